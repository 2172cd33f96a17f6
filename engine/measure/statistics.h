// Pure statistics of paired timings: no clock, no process. Unknown is NaN or infinity, never 0.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/evaluation.h"

namespace kbeam {

double median(std::span<const double> values);  // NaN when empty

struct Interval {
  double low = 0;
  double high = 0;
};
// Distribution-free confidence interval of the median from order statistics; infinite when too few
// values.
Interval median_interval(std::span<const double> values, double confidence);

// Speedup of candidate over reference: exp of the median of ln(reference / candidate), its
// interval, and the decision: faster when low > 1 + delta, slower when high < 1 - delta, same when
// inside, else ambiguous.
PairedSummary summarise_pairs(const PairedSamples& samples, double confidence, double delta);

double geometric_mean(std::span<const double> values);
// The case-wise summaries as one: geometric mean of speedups with a bootstrap interval over pairs.
struct GeomeanSummary {
  double speedup = 0;
  double low = 0;
  double high = 0;
};
GeomeanSummary summarise_cases(std::span<const Measurement> measurements, double confidence,
                               std::uint64_t seed);

// delta = max(0.5 %, 2 x timer resolution / bracket, 2 x |median of the A/A|).
double noise_floor(double aa_log_ratio_median, double timer_resolution_ns, double bracket_ns);

// A stopping rule: how many pairs in how many fresh processes, and when a comparison may end before
// the last process.
struct StoppingRule {
  std::string name;  // "promote"
  int pairs_per_process = 9;
  int processes = 1;
  double confidence = 0.99;
  bool fresh_base = false;  // base inputs generated anew for every pair, not only freshened
  // Clear: every case's interval lies beyond this ratio, either way. 0: never.
  double clear_ratio = 0;
  // Futile: no case's median reaches this speedup, so none can end as faster worth having. 0:
  // never.
  double futile_speedup = 0;
  // A case takes no more pairs in a process once it has so many there and all of them lie beyond
  // `pairs_clear_ratio`, the same way. 0: never.
  int pairs_when_clear = 0;
  double pairs_clear_ratio = 2;
  std::string text() const;  // "promote 9 x 3"
};
// Why the comparison may end now, or nothing. Ending early on futility can lose a gain, never claim
// one.
std::optional<std::string> may_end_early(const StoppingRule& rule,
                                         std::span<const Measurement> measurements);
// Whether one process has seen enough of one case before all pairs are taken.
bool may_skip_pairs(const StoppingRule& rule, const PairedSamples& of_process);
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

}  // namespace kbeam
