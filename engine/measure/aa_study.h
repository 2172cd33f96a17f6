// How often the shipped decision calls two identical kernels different: one long A/A trace is cut
// into comparisons, each decided as a campaign would. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "model/evaluation.h"

namespace kbeam {

struct AaRequest {
  int pairs = 31;         // of one process, in one comparison
  int processes = 3;      // consecutive processes of the trace that make one comparison
  int control_pairs = 8;  // before each comparison, in the first of its processes: the noise floor
  double confidence = 0.99;
  double timer_resolution_ns = 0;
};

struct AaStudy {
  std::vector<PairedSummary> comparisons;  // in the order of the trace
  std::vector<double> noise_floors;        // of each
  std::size_t count(Comparison comparison) const;
};

// Every pair is used once; what is left over at the end of a process is not used.
AaStudy study_identical_kernels(const PairedSamples& trace, const AaRequest& request);

}  // namespace kbeam
