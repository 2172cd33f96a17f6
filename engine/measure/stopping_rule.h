// Stopping rules by name: how many pairs a comparison takes in how many fresh processes, when it
// may end, and how its error is shared out. Pure; comparison_course.h follows a rule step by step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/evaluation.h"

namespace kbeam {

// `fixed`: `pairs_per_process` pairs in each of `processes` fresh processes.
// `sequential`: the comparison may end at each of its `looks`; every look adds fresh processes.
struct Look {
  int pairs = 0;      // in all, so far
  int processes = 0;  // fresh ones in all, so far; pairs are spread evenly over those of a look
};
struct StoppingRule {
  std::string name;           // the stage: "promote"
  int pairs_per_process = 9;  // fixed only
  int processes = 1;          // fixed only
  // Of the whole rule: what it risks (1 - confidence) is shared equally by looks and by claims.
  double confidence = 0.99;
  bool fresh_base = false;  // base inputs generated anew for every pair, not only freshened
  // Fixed: ends after a process when every case's interval lies beyond this ratio, either way. 0:
  // never.
  double clear_ratio = 0;
  // No case's median reaches this speedup, so none can end as faster worth having. 0: never asked.
  double futile_speedup = 0;
  // Far from 1: a case takes no more pairs in a process once it has so many there and all of them
  // lie beyond `pairs_clear_ratio`, the same way. 0: never.
  int pairs_when_clear = 0;
  double pairs_clear_ratio = 2;
  std::vector<Look> looks{};  // empty: fixed
  // How many comparisons one decision picks its claims from: cases, times attempts.
  int claims = 1;

  bool is_sequential() const { return !looks.empty(); }
  std::string text() const;  // "promote: sequential 31, 61, 121, 241", "confirm: fixed 15 x 2"
};

// Each fresh process takes so many pairs of every open case; the last one ends the rule.
int process_count(const StoppingRule& rule);
int pairs_in_process(const StoppingRule& rule, int process);
// The look that the end of this process completes, counted from 1; a fixed rule has one, its end.
std::optional<int> look_after(const StoppingRule& rule, int process);
// What one interval of one case has: 1 - (1 - confidence) / (looks x claims). A fixed rule that may
// end clear looks after every process.
double interval_confidence(const StoppingRule& rule);
// The same without `claims`: for one statement about all cases together.
double joint_confidence(const StoppingRule& rule);

// Why a comparison by a fixed rule may end now, or nothing. Ending early on futility can lose a
// gain, never claim one.
std::optional<std::string> may_end_early(const StoppingRule& rule,
                                         std::span<const Measurement> measurements);
// Whether one process has seen enough of one case before all pairs are taken.
bool may_skip_pairs(const StoppingRule& rule, const PairedSamples& of_process);

// What a challenge in a search may risk, so that of all champions crowned the share of false ones
// is held down however many candidates are tried: the n-th test (from 1), after so many successes.
double challenge_confidence(int test, int successes);

// How many pairs each stage of a campaign takes, by what a pair costs and how noisy it is there.
struct MeasurementRules {
  StoppingRule control;  // A/A: the baseline against itself
  StoppingRule screen;
  StoppingRule confirm;
  StoppingRule promote;
};
MeasurementRules cpu_rules();
// A GPU's clock is quiet, and vendors' routines may be a hundred times slower than a candidate: a
// case that is clear by a factor of two ends early.
MeasurementRules device_rules();
// Looks at 31, 61, 121 and 241 pairs, the first already over six processes.
StoppingRule sequential_rule(const std::string& name);

}  // namespace kbeam
