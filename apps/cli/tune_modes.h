// The three things that kbeam tune does, and what they share.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "apps/cli/command.h"
#include "base/result.h"
#include "search/tuner.h"

namespace kbeam::cli {

Result<int> tune_file(const Options& options);        // one file, by the judge
Result<int> record_space(const Options& options);     // --exhaustive
Result<int> simulate_tuners(const Options& options);  // --simulate

// What the command line allows: settings judged, and seconds.
class Allowance {
 public:
  static Result<Allowance> read(const Options& options);
  bool leaves(std::uint64_t evaluations) const;
  void limit(std::uint64_t evaluations);

 private:
  std::uint64_t evaluations_ = std::numeric_limits<std::uint64_t>::max();
  double seconds_ = std::numeric_limits<double>::infinity();
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

// --strategy: the named one, or every one for "all".
Result<std::vector<TunerStrategy>> chosen_strategies(const Options& options);

}  // namespace kbeam::cli
