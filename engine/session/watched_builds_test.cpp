#include "session/watched_builds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <set>
#include <string>

namespace kbeam {
namespace {

std::vector<Row> rows_named(const std::vector<std::string>& names) {
  std::vector<Row> rows;
  for (const std::string& name : names) rows.push_back({.source_name = name});
  return rows;
}

WatchedBuild build_saying(const std::string& word) {
  WatchedBuild build;
  build.artifact.reason = word;
  return build;
}

TEST(WatchedBuilds, GivesEachRowItsOwnBuildForEachWatch) {
  const auto build = [](const Row& row, Watch watch) -> Result<WatchedBuild> {
    if (row.source_name == "bad")
      return Error{ErrorCode::io, "build bad", "the disk is full", "make room"};
    return build_saying(row.source_name + " " + std::string(to_string(watch)));
  };
  const WatchedBuilds builds(build, rows_named({"a", "bad", "c"}), {Watch::memory, Watch::threads},
                             {0, 0});
  EXPECT_EQ(builds.get(2, Watch::threads)->artifact.reason, "c thread");
  EXPECT_EQ(builds.get(0, Watch::memory)->artifact.reason, "a address_undefined");
  EXPECT_EQ(builds.get(1, Watch::memory).error().happened, "the disk is full");
  EXPECT_EQ(builds.get(0, Watch::memory)->artifact.reason, "a address_undefined");  // again
}

TEST(WatchedBuilds, BuildsAsManyAtOnceAsThereAreCpus) {
  std::latch together(2);  // one thread alone would wait here for ever
  const auto build = [&](const Row& row, Watch) -> Result<WatchedBuild> {
    together.arrive_and_wait();
    return build_saying(row.source_name);
  };
  const WatchedBuilds builds(build, rows_named({"a", "b"}), {Watch::memory}, {0, 0});
  EXPECT_EQ(builds.get(1, Watch::memory)->artifact.reason, "b");
}

TEST(WatchedBuilds, LeavesUndoneWhatNobodyWaitsFor) {
  std::atomic<int> begun = 0;
  std::latch first_is_in_hand(1), may_end(1);
  const auto build = [&](const Row& row, Watch) -> Result<WatchedBuild> {
    if (++begun == 1) {
      first_is_in_hand.count_down();
      may_end.wait();
    }
    return build_saying(row.source_name);
  };
  std::jthread later;
  {
    const WatchedBuilds builds(build, rows_named({"a", "b", "c"}), {Watch::memory}, {0});
    first_is_in_hand.wait();
    later = std::jthread([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      may_end.count_down();
    });
  }
  EXPECT_EQ(begun, 1);
}

}  // namespace
}  // namespace kbeam
