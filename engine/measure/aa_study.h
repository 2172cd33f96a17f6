// What the shipped decision makes of recorded A/A traces, replayed in order: how often it calls
// identical kernels different, and which gain it would have found among how many pairs. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "measure/stopping_rule.h"
#include "model/evaluation.h"

namespace kbeam {

// A trace as fresh processes of so many pairs, in order; what is left over in a recorded process is
// not used. Where recorded processes are longer they are cut, and the pieces of one process come a
// round of all processes apart.
class ProcessSequence {
 public:
  ProcessSequence(const PairedSamples& trace, int pairs);
  std::size_t size() const { return pieces_.size(); }
  // Appends the first `pairs` pairs of piece `index` as the pairs of process `process`, the
  // reference slower by `gain`.
  void append(std::size_t index, int pairs, double gain, int process, PairedSamples& to) const;

 private:
  const PairedSamples& trace_;
  std::vector<std::vector<std::size_t>> pieces_;  // indices into the trace
};

struct AaRequest {
  StoppingRule rule = sequential_rule("promote");
  // Sets the noise floor of the comparisons after it; without a pair: 0.5 %.
  StoppingRule control = first_look_control();
  int comparisons_per_control = 8;
  double gain = 0;  // the candidate is made so much faster
  double timer_resolution_ns = 100;

  static StoppingRule first_look_control();  // 31 pairs in six processes
};

struct AaStudy {
  std::vector<PairedSummary> comparisons;  // in the order of the trace
  std::vector<double> noise_floors;        // of each
  std::size_t count(Comparison comparison) const;
};

// Every process is used once at most; a comparison that the trace cannot finish is not counted.
AaStudy study_identical_kernels(const PairedSamples& trace, const AaRequest& request);

// The least number of pairs among which a gain is called faster in 95 % of trials.
struct PowerPoint {
  double gain = 0;
  int pairs = 0;  // 0: not within the most pairs asked for, the answer stays ambiguous
  double found_by_rule =
      0;  // share of the comparisons by the sequential rule that are called faster
};
std::vector<PowerPoint> study_power(const PairedSamples& trace, std::span<const double> gains);

// A clock that makes pairs of normal log-ratios, and how often the sequential rule with a control
// finds a true gain there within so many pairs.
struct SimulatedPower {
  double gain = 0.02;
  double pair_spread = 0.01;  // between the quartiles of the log-ratio
  int most_pairs = 93;
  int trials = 1000;
  std::uint64_t seed = 1;
};
double simulate_power(const SimulatedPower& request);

}  // namespace kbeam
