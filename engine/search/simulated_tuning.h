// A tuner on a recorded space: what it has found after each evaluation. Builds and runs nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/recorded_space.h"
#include "search/tuner.h"

namespace kbeam {

// By evaluation, the best time so far over the best of the space, less 1; infinite until something
// worked. Shorter than `evaluations` when the space is exhausted.
std::vector<double> simulate_tuning(const TunerStrategy& strategy, const RecordedSpace& space,
                                    std::uint64_t seed, int evaluations);

// What many tunings had found after so many evaluations: from the middle half.
struct DistanceSummary {
  double low = 0;  // quartile
  double median = 0;
  double high = 0;
};
DistanceSummary summarise_distances(std::span<const std::vector<double>> tunings,
                                    std::size_t evaluations);

}  // namespace kbeam
