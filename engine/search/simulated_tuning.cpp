#include "search/simulated_tuning.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/entropy.h"

namespace kbeam {

std::vector<double> simulate_tuning(const TunerStrategy& strategy, const RecordedSpace& space,
                                    std::uint64_t seed, int evaluations) {
  const auto tuner = strategy.make(space.space(derive_seed(seed, "start")), seed);
  std::vector<double> distances;
  double best = std::numeric_limits<double>::infinity();
  while (static_cast<int>(distances.size()) < evaluations) {
    const auto knobs = tuner->ask();
    if (!knobs) break;
    const auto time_ms = space.time_ms(*knobs);
    tuner->tell(*knobs, time_ms ? std::optional<double>(1 / *time_ms) : std::nullopt);
    if (time_ms) best = std::min(best, *time_ms / space.best_ms() - 1);
    distances.push_back(best);
  }
  return distances;
}

DistanceSummary summarise_distances(std::span<const std::vector<double>> tunings,
                                    std::size_t evaluations) {
  CHECK(!tunings.empty() && evaluations > 0, "there are tunings, and they evaluated something");
  std::vector<double> found;
  for (const std::vector<double>& tuning : tunings)
    found.push_back(tuning.empty() ? std::numeric_limits<double>::infinity()
                                   : tuning[std::min(evaluations, tuning.size()) - 1]);
  std::sort(found.begin(), found.end());
  const auto at = [&](double share) {
    // Between the two middle ones of an even number.
    const double place = share * static_cast<double>(found.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const double above = found[std::min(below + 1, found.size() - 1)];
    const double part = place - static_cast<double>(below);
    return part == 0 ? found[below] : (1 - part) * found[below] + part * above;
  };
  return {at(0.25), at(0.5), at(0.75)};
}

}  // namespace kbeam
