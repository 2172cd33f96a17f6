// One run of one strategy in one world: screens and confirmations with the noise of a real machine,
// each of which costs one evaluation.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/beam_study/strategies.h"
#include "bench/beam_study/world.h"

namespace kbeam {

struct CourseConfig {
  SearchConfig search;  // seed and cases are filled in
  std::uint64_t seed = 0;
  int budget = 0;
  double screen_noise = 0.03;   // of ln(speed-up), one standard deviation
  double confirm_noise = 0.01;  // a confirmation has more pairs
};

// ln of what the champions truly reach of the optimum, geometric mean over the cases, after each
// evaluation. A case without a champion counts as the baseline.
std::vector<double> run_course(const World& world, MakeStrategy make, const CourseConfig& config);

}  // namespace kbeam
