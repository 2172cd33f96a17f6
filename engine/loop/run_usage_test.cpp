#include "loop/run_usage.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "loop/campaign_log.h"

namespace kbeam {
namespace {

class RunUsageTest : public ::testing::Test {
 protected:
  RunUsageTest() : folder_(*make_temporary_folder(testing::TempDir(), "usage-")) {
    CampaignConfig config{.run_id = "r"};
    config.budget = {.wall_s = 60, .tokens = 1000};
    log_ = std::make_unique<CampaignLog>(
        Archive::create(folder_ / "archive.sqlite", config, {}).value());
  }
  ~RunUsageTest() override {
    log_.reset();
    std::filesystem::remove_all(folder_);
  }
  void observe(const Used& used) {
    ASSERT_TRUE(log_->observation({.candidate_id = "c"}, used).ok());
  }
  RunUsage usage() { return run_usage_of(log_->archive()).value(); }

  std::filesystem::path folder_;
  std::unique_ptr<CampaignLog> log_;
};

TEST_F(RunUsageTest, BeforeAnythingIsUsedTheLimitsAreThoseOfTheBeginning) {
  EXPECT_EQ(usage().used.used_s, 0);
  EXPECT_EQ(usage().limits.wall_s, 60);
  EXPECT_EQ(usage().limits.tokens, 1000);
}

TEST_F(RunUsageTest, TheNewestCountsWhoeverWroteIt) {
  ASSERT_TRUE(log_->usage({.used_s = 5, .device_s = 3}, {.wall_s = 60}).ok());
  EXPECT_EQ(usage().used.used_s, 5) << "a baseline takes time too";
  observe({.screened = 1, .used_s = 9, .device_s = 6});
  EXPECT_EQ(usage().used.screened, 1);
  EXPECT_EQ(usage().used.device_s, 6);
  ASSERT_TRUE(log_->usage({.screened = 1, .used_s = 30, .device_s = 20}, {.wall_s = 90}).ok());
  EXPECT_EQ(usage().used.used_s, 30) << "so does a promotion";
  EXPECT_EQ(usage().limits.wall_s, 90) << "a resumed run may have more";
  observe({.screened = 2, .used_s = 31});
  EXPECT_EQ(usage().used.screened, 2);
  EXPECT_EQ(usage().limits.wall_s, 90);
}

TEST_F(RunUsageTest, WhatAParentWasAllowedIsNothingToAFork) {
  ASSERT_TRUE(log_->usage({.used_s = 5}, {.wall_s = 90}).ok());
  CampaignConfig config{.run_id = "f"};
  config.budget.wall_s = 70;
  const std::filesystem::path file = folder_ / "fork" / "archive.sqlite";
  const auto forked = Archive::fork(
      {.parent = folder_ / "archive.sqlite", .file = file, .config = config, .who = "a tester"});
  ASSERT_TRUE(forked.ok()) << forked.error().text();
  const auto usage = run_usage_of(*Archive::open_read_only(file).value());
  ASSERT_TRUE(usage.ok());
  EXPECT_EQ(usage->used.used_s, 5);
  EXPECT_EQ(usage->limits.wall_s, 70);
}

TEST_F(RunUsageTest, ARunOfAnOlderKbeamHasItsObservationsCounted) {
  for (const double used_s : {1.0, 2.0})
    ASSERT_TRUE(log_->archive()
                    .append_event("observation",
                                  {{"candidate_id", "c"}, {"used_s", used_s}, {"busy_s", 0.5}})
                    .ok());
  EXPECT_EQ(usage().used.screened, 2);
  EXPECT_EQ(usage().used.used_s, 2);
}

}  // namespace
}  // namespace kbeam
