// What an archived run knows of the settings of a file: for a tuning that need not begin at
// nothing.
#pragma once

#include <vector>

#include "apps/cli/setting_bench.h"

namespace kbeam::cli {

struct WarmStart {
  std::vector<KnobValues> best;      // the fastest first: measured again here before they count
  std::vector<KnobValues> failures;  // did not build, or were wrong: not worth another try
};

// Of --warm-from, the settings of the same source, comments and layout aside. A run without any is
// an error.
Result<WarmStart> read_warm_start(const Options& options, const SettingBench& bench);

}  // namespace kbeam::cli
