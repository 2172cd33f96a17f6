// What `kbeam gc` may drop, and what it must not. Builds come first, for they can be made again;
// then runs without a promotion, the oldest first. What a promotion was decided on stays, however
// full the disk is. Nothing of a kbeam that is running is touched.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam {

struct DiskBudget {
  std::filesystem::path runs;   // the folder of all runs
  std::filesystem::path cache;  // of builds
  std::int64_t keep_bytes = 0;
  std::vector<std::filesystem::path> only_runs;  // when not empty: builds and other runs stay
  bool dry_run = false;                          // says what it would do
};

struct Dropped {
  std::filesystem::path path;
  std::int64_t bytes = 0;
  std::string why;
};
struct Kept {
  std::filesystem::path path;
  std::int64_t bytes = 0;
  std::string why;
};

struct DiskAccount {
  std::int64_t before_bytes = 0;  // of runs and builds together
  std::int64_t after_bytes = 0;
  std::vector<Dropped> dropped;
  std::vector<Kept> kept;  // what could not be dropped although the budget asked for more
};

Result<DiskAccount> collect_garbage(const DiskBudget& budget);

}  // namespace kbeam
