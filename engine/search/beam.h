// The families of a campaign: roles, protection, retirement, and whose turn is next. Knows nothing
// of knobs or code.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "search/search.h"

namespace kbeam {

struct BeamFamily {
  FamilyState state;
  int in_flight = 0;
  bool exhausted = false;     // nothing left that promises something
  bool drained = false;       // no setting left at all
  bool never_worked = false;  // why it is retired
  bool revived = false;       // came back because nothing else was left: never judged again
  bool dropped = false;       // by whoever steers: stays away whatever is left
  bool is_protected = false;  // by whoever steers: never retired
  std::map<Verdict, int> failures;

  bool never_judged() const { return revived || is_protected; }
};

// Where the regimes stand: the speed-up to beat and who holds it.
struct Standing {
  double speedup = 0;
  std::string family;  // of the champion; empty before there is one
};
using Standings = std::map<std::string, Standing>;

// Whose turn it is.
struct BeamSlot {
  Role role = Role::structural;
  bool restart = false;  // a random setting of any family
  std::string why;
};

class Beam {
 public:
  explicit Beam(const SearchConfig& config) : config_(config) {}

  BeamFamily& family(const std::string& name);  // made when new
  const BeamFamily* find(const std::string& name) const;
  const std::deque<BeamFamily>& families() const { return families_; }

  // Nothing when no family can be asked.
  std::optional<BeamSlot> choose_slot();
  void spend(const BeamSlot& slot);

  // What whoever steers says of a family; the later word counts.
  void drop(BeamFamily& family, const std::string& why);
  void protect(BeamFamily& family, const std::string& why);
  bool can_ask(const BeamFamily& family) const;

  // After every change of what is known: gives roles, retires.
  void judge(const Standings& standings);

  void count_evaluation() { ++since_champion_; }
  void note_champion() { since_champion_ = 0; }
  bool stagnating() const { return since_champion_ >= config_.stagnation; }

  std::vector<Search::Notice> take_notices() { return std::exchange(notices_, {}); }

 private:
  int count_available(Role role) const;
  int count_live() const;
  int count_places_taken() const;
  Role reserved_role() const;
  double reserved_share() const;
  bool judged(const BeamFamily& family) const;
  void assign_role(BeamFamily& family, const Standings& standings) const;
  void retire_wrong();
  void retire_slow(const Standings& standings);
  void retire(BeamFamily& family, std::string why);
  bool revive();
  void bring_back(BeamFamily& family, const std::string& why);

  SearchConfig config_;
  std::deque<BeamFamily> families_;  // in order of arrival
  std::vector<Search::Notice> notices_;
  double reserved_credit_ = 0;   // evaluations owed to structural and near_miss
  double near_miss_credit_ = 0;  // of those, owed to near_miss
  int since_champion_ = 0;
  int stagnant_asks_ = 0;
};

// The best share of the speed to beat that the family reaches on any regime.
double closeness(const FamilyState& family, const Standings& standings);

}  // namespace kbeam
