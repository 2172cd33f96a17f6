// The outer search: which family gets the next evaluation, in which role, and what is remembered.
// Pure: told of evaluations, asked for proposals. Works for any target and any proposer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/campaign.h"
#include "model/candidate.h"
#include "model/evaluation.h"

namespace kbeam {

// A sketch: an idea with code and knobs, from ideas.toml or from a person.
struct Sketch {
  Idea idea;
  std::string source;
  std::string source_name;
  std::vector<Knob> knobs;
  std::vector<KnobConstraint> constraints;
  // Without comments and layout: sketches that agree in it are one, the first stays. Empty:
  // `source` itself.
  std::string normalised_source;
};

struct SearchConfig {
  std::uint64_t seed = 0;
  int beam = 4;                      // families with a role at one time
  bool random_choice = false;        // any setting of any sketch: what a search is measured against
  int trials_before_judgement = 12;  // evaluations that a young family gets whatever its speed
  int trials_when_wrong = 5;         // evaluations of a family of which nothing was accepted yet
  int random_starts = 3;             // random settings of a sketch before its tuners climb
  double structural_share = 0.2;     // least share of evaluations for structural and near_miss
  int stagnation = 30;  // evaluations without a champion before structural slots are forced
  double challenge_margin = 0.02;  // least screened gain over a champion for a confirmation
  int in_flight = 1;               // evaluations that the caller keeps under way: for absorb
  std::vector<std::string> cases;  // the timed cases: the regimes
};

struct Proposal {
  Candidate candidate;
  Role role = Role::structural;
  std::string strategy;           // "default", "random", "borrowed", "local_search", "model"
  std::vector<std::string> aims;  // the cases it is meant to win; empty: all
  std::string why;                // for the decision log
};

// What one evaluation showed, against the baseline, per case. Speeds are absent when it was not
// accepted.
struct Observation {
  std::string candidate_id;
  Verdict verdict = Verdict::engine_failed;
  std::map<std::string, double> speedup;  // per case
};

// The same calls in the same order give the same proposals: nothing else is looked at.
class Search {
 public:
  static std::unique_ptr<Search> make(SearchConfig config, std::vector<Sketch> sketches);
  virtual ~Search() = default;

  // The next candidate, never one that was proposed or absorbed before. Nothing when no setting is
  // left; with evaluations in flight a later ask may find one again.
  virtual std::optional<Proposal> ask() = 0;
  // Order does not matter and any number may be in flight. A second observation of a candidate
  // replaces the first; one of an unknown candidate is ignored; engine_failed counts for nothing.
  virtual void tell(const Observation& observation) = 0;
  // A family that arrives while the campaign runs (kbeam submit), or another sketch of a known one.
  virtual void add(Sketch sketch) = 0;
  // An evaluation from before a resume, or made by hand. Where the search would have asked for this
  // candidate by now, it is as if it had: absorbing the evaluations of a run that always kept
  // `in_flight` under way, with its additions, crowns and refusals in their places, gives the state
  // of that run, and ask then begins with what was under way.
  virtual void absorb(const Candidate& candidate, const Observation& observation) = 0;

  // Screening suggests that `candidate_id` beats the champion of these cases: confirm before it
  // counts.
  struct Challenge {
    std::string case_name;
    std::string candidate_id;
    double screened_speedup = 0;
  };
  // Each is returned once; none before every first sketch was proposed.
  virtual std::vector<Challenge> challenges() = 0;
  virtual std::vector<Challenge> waiting_challenges() const = 0;  // what challenges() would return
  // What no confirmation can tell from nothing on this machine: a smaller gain is no challenge.
  virtual void set_delta(const std::string& case_name, double delta) = 0;
  virtual void crown(const Champion& champion) = 0;  // after confirmation
  virtual void refuse(const std::string& case_name, const std::string& candidate_id,
                      const std::string& why) = 0;

  // What whoever steers says of a family; the later word counts. A dropped family is asked for
  // nothing more and never comes back by itself; what was measured of it, champions too, stays. A
  // protected one is never retired, and comes back if it was. False: there is no such family.
  virtual bool drop(const std::string& family, const std::string& why) = 0;
  virtual bool protect(const std::string& family, const std::string& why) = 0;

  // What the search did since the last call, for the decision log.
  struct Notice {
    std::string what;     // "retired family recursive"
    std::string subject;  // the family
    std::string why;
  };
  virtual std::vector<Notice> notices() = 0;

  virtual std::vector<FamilyState> families() const = 0;
  virtual std::vector<Champion> champions() const = 0;  // in the order of the cases
  virtual std::optional<Candidate> find(const std::string& candidate_id) const = 0;
};

// One row a regime from the champions, meeting half way (geometrically) between the cases' axis
// values.
struct RegimePoint {
  std::string case_name;
  std::int64_t axis_value = 0;
};
// Regimes without a champion are served by their neighbours; of two regimes at one axis value the
// faster champion stays. Without any champion the candidate has no rows. One row alone has the id
// of the plain candidate it is.
Candidate assemble_portfolio(const std::vector<Champion>& champions,
                             const std::vector<RegimePoint>& regimes,
                             const std::map<std::string, Candidate>& candidates);

}  // namespace kbeam
