// The settings that a sketch's knobs can take and its constraints allow. Knows nothing of scores.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/candidate.h"

namespace kbeam {

// A setting as one index a knob into its choices: what tuners work on.
using Setting = std::vector<int>;

// A constraint is decided where every name in it is a knob whose value is an integer, true or
// false. Elsewhere it allows the setting and is left to the compiler. Values that are no integers
// ("kbeam::kNativeFloats") are opaque.
class KnobSpace {
 public:
  KnobSpace(std::vector<Knob> knobs, std::vector<KnobConstraint> constraints);

  // Allows these settings and no others, whatever the constraints say: a recorded space knows its
  // settings but not the rule behind them.
  void restrict_to(std::vector<Setting> settings);

  // Choices without repetition, the default among them, ascending where all of them are integers.
  const std::vector<Knob>& knobs() const { return knobs_; }
  KnobValues defaults() const;
  std::int64_t size() const;  // before constraints; INT64_MAX when it does not fit

  // Absent knobs count as their defaults. False for an unknown knob or a value outside its choices.
  bool allows(const KnobValues& values) const;
  bool allows(const Setting& setting) const;

  // Allowed settings that differ in one knob, next choices first.
  std::vector<KnobValues> neighbours(const KnobValues& values) const;
  // Those whose one changed knob is `distance` choices away.
  std::vector<Setting> neighbours_at(const Setting& setting, int distance) const;
  int longest_knob() const;  // its number of choices

  std::optional<Setting> find_setting(const KnobValues& values) const;
  KnobValues values_of(const Setting& setting) const;

  // Constraints over the knobs 0..`assigned` of `setting` that name knob `assigned`: false when one
  // fails. Lets an enumeration leave a branch as soon as it is dead.
  bool allows_so_far(const Setting& setting, int assigned) const;

 private:
  struct Constraint {
    std::string condition;
    std::vector<int> knobs;  // ascending
    std::vector<std::uint8_t>
        answers;  // for every combination of these knobs; empty when there are too many
  };

  void add_constraint(const std::string& condition);
  bool holds(const Constraint& constraint, const Setting& setting) const;
  bool is_listed(const Setting& setting, std::size_t knobs) const;
  bool evaluate(const Constraint& constraint, const Setting& setting) const;
  std::size_t answer_index(const Constraint& constraint, const Setting& setting) const;
  void fill_answers(Constraint& constraint);
  int choices(int knob) const {
    return static_cast<int>(knobs_[static_cast<std::size_t>(knob)].choices.size());
  }

  std::vector<Knob> knobs_;
  std::vector<std::vector<std::optional<std::int64_t>>>
      numbers_;  // of every choice; nothing when opaque
  std::vector<Constraint> constraints_;
  std::vector<std::vector<int>> decided_at_;            // constraints whose last knob is this one
  std::shared_ptr<const std::vector<Setting>> listed_;  // ascending; null: not restricted
};

}  // namespace kbeam
