// What may go goes in order, and what a promotion rests on never does.
#include "loop/disk_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "archive/archive.h"
#include "base/files.h"
#include "build/build_cache.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class DiskBudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = make_temporary_folder(testing::TempDir(), "kbeam-gc-test-").value();
    budget_.runs = folder_ / "runs";
    budget_.cache = folder_ / "cache";
    fs::create_directories(budget_.runs);
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The archive stays open: a run that is being written to.
  std::unique_ptr<Archive> begin_run(const std::string& id) {
    CampaignConfig config;
    config.run_id = id;
    return Archive::create(budget_.runs / id / "archive.sqlite", config, {}).value();
  }
  enum class Ended { unpromoted, promoted };
  void make_run(const std::string& id, Ended ended, int age_s) {
    {
      const auto archive = begin_run(id);
      if (ended == Ended::promoted) {
        EXPECT_TRUE(archive->append_event("frozen", Json{{"candidate_id", "c"}}).ok());
      }
    }
    const fs::path file = budget_.runs / id / "archive.sqlite";
    fs::last_write_time(file, fs::last_write_time(file) - std::chrono::seconds(age_s));
  }
  fs::path make_build(const std::string& key, int age_s) {
    const fs::path place = budget_.cache / "builds" / key.substr(0, 2) / key;
    fs::create_directories(place);
    std::ofstream(place / "module.so") << std::string(10'000, 'x');
    fs::last_write_time(place, fs::last_write_time(place) - std::chrono::seconds(age_s));
    return place;
  }
  DiskAccount collect() {
    auto account = collect_garbage(budget_);
    EXPECT_TRUE(account.ok());
    return *account;
  }
  bool has_run(const std::string& id) const { return fs::exists(budget_.runs / id); }

  fs::path folder_;
  DiskBudget budget_;
};

TEST_F(DiskBudgetTest, NothingGoesWhileThereIsRoom) {
  make_run("old", Ended::unpromoted, 100);
  const fs::path build = make_build("abcd", 100);
  budget_.keep_bytes = 1 << 30;
  const DiskAccount account = collect();
  EXPECT_TRUE(account.dropped.empty() && account.kept.empty());
  EXPECT_EQ(account.before_bytes, account.after_bytes);
  EXPECT_TRUE(fs::exists(build) && has_run("old"));
}

TEST_F(DiskBudgetTest, TheBuildThatWasUsedLongestAgoGoesFirst) {
  make_run("run", Ended::unpromoted, 1000);
  const fs::path older = make_build("abcd", 200);
  const fs::path newer = make_build("efgh", 100);
  budget_.keep_bytes = 1 << 30;
  budget_.keep_bytes = collect().before_bytes - 5'000;
  const DiskAccount account = collect();
  ASSERT_EQ(account.dropped.size(), 1u);
  EXPECT_EQ(account.dropped[0].path, older);
  EXPECT_EQ(account.after_bytes, account.before_bytes - 10'000);
  EXPECT_TRUE(fs::exists(newer) && has_run("run"));
}

TEST_F(DiskBudgetTest, ARunWithAPromotionStaysWhateverTheBudget) {
  make_run("with", Ended::promoted, 300);
  make_run("without", Ended::unpromoted, 200);
  make_build("abcd", 0);
  budget_.keep_bytes = 0;
  const DiskAccount account = collect();
  EXPECT_EQ(account.dropped.size(), 2u);
  EXPECT_FALSE(has_run("without"));
  ASSERT_TRUE(has_run("with"));
  EXPECT_TRUE(Archive::open_read_only(budget_.runs / "with/archive.sqlite").value()->verify().ok());
  ASSERT_EQ(account.kept.size(), 1u);
  EXPECT_THAT(account.kept[0].why, HasSubstr("promotion"));
}

TEST_F(DiskBudgetTest, ARunningRunAndItsBuildsStay) {
  const auto running = begin_run("running");
  make_build("abcd", 0);
  const BuildCache in_use(budget_.cache / "builds");
  budget_.keep_bytes = 0;
  const DiskAccount account = collect();
  EXPECT_TRUE(account.dropped.empty());
  EXPECT_EQ(account.kept.size(), 2u);
  EXPECT_TRUE(running->append_event("phase", Json{{"number", 1}}).ok());
}

TEST_F(DiskBudgetTest, ADryRunChangesNothing) {
  make_run("without", Ended::unpromoted, 200);
  const fs::path build = make_build("abcd", 0);
  budget_.keep_bytes = 0;
  budget_.dry_run = true;
  const DiskAccount account = collect();
  EXPECT_EQ(account.dropped.size(), 2u);
  EXPECT_EQ(account.after_bytes, 0);
  EXPECT_TRUE(fs::exists(build) && has_run("without"));
}

TEST_F(DiskBudgetTest, OnlyTheRunsThatAreNamedGo) {
  make_run("named", Ended::unpromoted, 100);
  make_run("older", Ended::unpromoted, 200);
  const fs::path build = make_build("abcd", 300);
  budget_.keep_bytes = 0;
  budget_.only_runs = {budget_.runs / "named"};
  const DiskAccount account = collect();
  EXPECT_EQ(account.dropped.size(), 1u);
  EXPECT_TRUE(!has_run("named") && has_run("older") && fs::exists(build));
}

TEST_F(DiskBudgetTest, WhatKilledProcessesLeftGoesAnyway) {
  make_run("whole", Ended::unpromoted, 0);
  fs::create_directories(budget_.runs / "stillborn");
  std::ofstream(budget_.runs / "stillborn/archive.sqlite.draft") << "half";
  std::ofstream(budget_.runs / "whole/report.html.part-abcdefgh") << "half";
  fs::create_directories(budget_.runs / ".dropped-abcdefgh");
  fs::create_directories(budget_.cache / "builds/draft-abcdefghij");
  budget_.keep_bytes = 1 << 30;
  EXPECT_EQ(collect().dropped.size(), 3u);
  EXPECT_FALSE(has_run("stillborn") || has_run(".dropped-abcdefgh"));
  EXPECT_FALSE(fs::exists(budget_.runs / "whole/report.html.part-abcdefgh"));
  EXPECT_FALSE(fs::exists(budget_.cache / "builds/draft-abcdefghij"));
  EXPECT_TRUE(has_run("whole"));
}

TEST_F(DiskBudgetTest, ADamagedRunIsKeptForItsOwner) {
  make_run("damaged", Ended::unpromoted, 0);
  const fs::path file = budget_.runs / "damaged/archive.sqlite";
  ASSERT_TRUE(write_file(file, std::string(8192, 'x')).ok());
  budget_.keep_bytes = 0;
  const DiskAccount account = collect();
  EXPECT_TRUE(fs::exists(file));
  ASSERT_EQ(account.kept.size(), 1u);
  EXPECT_THAT(account.kept[0].why, HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace kbeam
