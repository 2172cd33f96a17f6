#include "apps/worker/task_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/worker/seats_fixture.h"
#include "execute/task_fixture.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::SizeIs;

class TaskRunTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *make_temporary_folder(fs::temp_directory_path(), "run-");
    folder_ = root_ / "task";
    fs::create_directory(root_ / "parts");
    const TaskForTests made = task_for_tests(root_ / "parts");
    ASSERT_TRUE(write_task_folder(made.task, made.files, folder_).ok());
    options_.conductor.device_uuid = "GPU-1";
    options_.device_name = "A GPU";
  }
  void TearDown() override { fs::remove_all(root_); }

  Result<TaskRun> run() {
    return run_task_folder(folder_, options_, lab_.tools(), DeviceStates(root_), lab_.clock);
  }
  Result<TaskResult> stored() {
    const auto loaded = read_task_folder(folder_);
    EXPECT_TRUE(loaded.ok());
    return read_result(*loaded, folder_);
  }

  fs::path root_;
  fs::path folder_;
  TaskRunOptions options_;
  SeatLab lab_;
};

TEST_F(TaskRunTest, LeavesASealedResultAndNoProgress) {
  const auto ran = run();
  ASSERT_TRUE(ran.ok()) << ran.error().text();
  EXPECT_FALSE(ran->was_done);
  const auto result = stored();
  ASSERT_TRUE(result.ok()) << result.error().text();
  EXPECT_EQ(result->evaluation.verdict, Verdict::accepted);
  EXPECT_THAT(result->evaluation.measurements.at(0).samples.candidate_ns, SizeIs(27));
  EXPECT_FALSE(fs::exists(folder_ / kProgressFile));
}

TEST_F(TaskRunTest, WhatIsDoneIsNotDoneAgain) {
  ASSERT_TRUE(run().ok());
  const std::size_t steps = lab_.log.size();
  const auto again = run();
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->was_done);
  EXPECT_EQ(lab_.log.size(), steps);
}

TEST_F(TaskRunTest, OurOwnFailureIsTriedAgain) {
  lab_.behaviour[SeatRole::reference].slope_ns = 1e9;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(stored()->evaluation.verdict, Verdict::engine_failed);
  lab_.behaviour[SeatRole::reference].slope_ns = 1000;
  const auto again = run();
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->was_done);
  EXPECT_EQ(stored()->evaluation.verdict, Verdict::accepted);
}

TEST_F(TaskRunTest, GoesOnAfterAKill) {
  lab_.kill_at = 40;
  EXPECT_THROW(static_cast<void>(run()), Killed);
  EXPECT_TRUE(fs::exists(folder_ / kProgressFile));
  EXPECT_FALSE(fs::exists(folder_ / kResultFile));
  lab_.kill_at = -1;
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(stored()->evaluation.verdict, Verdict::accepted);
  EXPECT_THAT(lab_.calls_of(SeatRole::candidate, "small"), SizeIs(1));
}

TEST_F(TaskRunTest, ProgressThatCannotBeReadIsSetAside) {
  lab_.kill_at = 40;
  EXPECT_THROW(static_cast<void>(run()), Killed);
  lab_.kill_at = -1;
  std::string text = *read_file(folder_ / kProgressFile);
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  ASSERT_TRUE(write_file(folder_ / kProgressFile, text).ok());
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(stored()->evaluation.verdict, Verdict::accepted);
  EXPECT_THAT(lab_.calls_of(SeatRole::candidate, "small"), SizeIs(2)) << "begun anew";
  EXPECT_TRUE(fs::exists(folder_ / "progress.json.damaged"));
}

TEST_F(TaskRunTest, ADeviceThatFailsItsProbeIsQuarantined) {
  lab_.behaviour[SeatRole::reference].probe = [](int) { return false; };
  lab_.behaviour[SeatRole::witness].probe = [](int) { return false; };
  ASSERT_TRUE(run().ok());
  const auto quarantine = DeviceStates(root_).find("GPU-1");
  ASSERT_TRUE(quarantine.has_value());
  EXPECT_EQ(quarantine->name, "A GPU");
  EXPECT_THAT(quarantine->evidence, HasSubstr("wrong answer"));
  EXPECT_THAT(stored()->device_trouble, HasSubstr("wrong answer"));
  // Nothing runs there any more; another device goes on from what was good.
  const auto refused = run();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().happened, HasSubstr("quarantined"));
  lab_ = SeatLab();
  for (const SeatRole role : {SeatRole::candidate, SeatRole::reference})
    lab_.behaviour[role].uuid = "GPU-2";
  options_.conductor.device_uuid = "GPU-2";
  ASSERT_TRUE(run().ok());
  EXPECT_EQ(stored()->evaluation.verdict, Verdict::accepted);
  EXPECT_EQ(stored()->device.uuid, "GPU-2");
  EXPECT_EQ(stored()->device_trouble, "");
}

TEST_F(TaskRunTest, ATamperedFolderIsRefusedBeforeAnythingRuns) {
  ASSERT_TRUE(write_file(folder_ / "problem/problem.so", "other code").ok());
  const auto refused = run();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().text(), HasSubstr("problem.so"));
  EXPECT_TRUE(lab_.log.empty());
}

TEST_F(TaskRunTest, ATamperedResultIsRefusedAndNotReplaced) {
  ASSERT_TRUE(run().ok());
  std::string text = *read_file(folder_ / kResultFile);
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  ASSERT_TRUE(write_file(folder_ / kResultFile, text).ok());
  EXPECT_FALSE(run().ok());
  EXPECT_EQ(*read_file(folder_ / kResultFile), text);
}

TEST_F(TaskRunTest, AsPlainNothingIsWritten) {
  options_.as_plain = true;
  const auto ran = run();
  ASSERT_TRUE(ran.ok()) << ran.error().text();
  EXPECT_THAT(ran->conducted.result.output_hashes, SizeIs(2));
  EXPECT_FALSE(fs::exists(folder_ / kResultFile));
  EXPECT_FALSE(fs::exists(folder_ / kProgressFile));
}

TEST_F(TaskRunTest, PausesWithItsProgressSaved) {
  lab_.call_s = 1;
  options_.conductor.pieces_s = 25;
  const auto paused = run();
  ASSERT_TRUE(paused.ok());
  EXPECT_EQ(paused->conducted.end, Conducted::End::paused);
  EXPECT_TRUE(fs::exists(folder_ / kProgressFile));
  EXPECT_FALSE(fs::exists(folder_ / kResultFile));
}

}  // namespace
}  // namespace kbeam
