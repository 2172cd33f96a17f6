// Honest candidates in real processes, and what the caller can do wrong.
#include "target/cpu/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <thread>

#include "target/cpu/runner_fixture.h"
#include "target/cpu/runner_levels.h"

namespace kbeam {
namespace {

using testing::axes;
using testing::expect_right;
using testing::fill_inputs;
using ::testing::HasSubstr;
using testing::kPatience_s;
using testing::options_for;
using testing::shapes;
using testing::start_runner;

class RunnerWorkers : public ::testing::TestWithParam<int> {};

TEST_P(RunnerWorkers, AnHonestCandidateComputesInEverySlot) {
  const auto runner = start_runner(options_for("deeds", GetParam()));
  ASSERT_TRUE(runner);
  const auto planned = runner->plan(0, shapes(), axes(Deed::honest), kPatience_s);
  ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
  EXPECT_EQ(planned.value->scratch_bytes, 4096);
  ASSERT_TRUE(runner->lay_out(shapes(), 3).ok());
  for (int call = 0; call < 30; ++call) {
    const int slot = call % 3;
    fill_inputs(runner->slot(slot), static_cast<float>(call));
    runner->poison(slot, static_cast<std::uint64_t>(call));
    runner->flush(slot);
    const auto time = runner->call(planned.value->plan_id, slot, kPatience_s);
    ASSERT_TRUE(time.ok()) << time.failure.sentence;
    EXPECT_GT(time.value->wall_ns, 0);
    EXPECT_FALSE(runner->inspect(slot));
    EXPECT_FALSE(runner->find_unwritten(slot));
    expect_right(runner->slot(slot), static_cast<float>(call));
  }
  EXPECT_TRUE(runner->empty_call().ok());
}

TEST_P(RunnerWorkers, OrdinaryLibraryUseIsAllowed) {
  const auto runner = start_runner(options_for("deeds", GetParam()));
  ASSERT_TRUE(runner);
  const auto planned = runner->plan(0, shapes(), axes(Deed::ordinary_library_use), kPatience_s);
  ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
  ASSERT_TRUE(runner->lay_out(shapes(), 1).ok());
  fill_inputs(runner->slot(0), 1);
  const auto time = runner->call(planned.value->plan_id, 0, kPatience_s);
  ASSERT_TRUE(time.ok()) << time.failure.sentence;
  expect_right(runner->slot(0), 1);
}

INSTANTIATE_TEST_SUITE_P(Teams, RunnerWorkers, ::testing::Values(1, 2));

TEST(Runner, SeveralRowsShapesAndLayoutsLiveInOneProcess) {
  RunnerOptions options = options_for("deeds");
  options.modules.push_back(testing::candidate_module("load_reads_files"));
  options.modules.push_back(options.modules.front());
  const auto runner = start_runner(options);
  ASSERT_TRUE(runner);
  for (const std::int64_t length : {1, 17, 5000}) {
    const auto planned = runner->plan(length % 2 == 1 ? 0 : 2, shapes(length),
                                      axes(Deed::honest, length), kPatience_s);
    ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
    ASSERT_TRUE(runner->lay_out(shapes(length), 2).ok());
    fill_inputs(runner->slot(1), 3);
    runner->poison(1, 5);
    ASSERT_TRUE(runner->call(planned.value->plan_id, 1, kPatience_s).ok());
    EXPECT_FALSE(runner->inspect(1));
    expect_right(runner->slot(1), 3);
  }
}

TEST(Runner, TheBestSandboxOfThisMachineIsUsedAndNamed) {
  const auto runner = start_runner(options_for("deeds"));
  ASSERT_TRUE(runner);
  EXPECT_EQ(runner->sandbox(), best_sandbox());
  EXPECT_EQ(runner->weaknesses().empty(), best_sandbox() == SandboxLevel::namespaces);
}

class RunnerLevels : public ::testing::TestWithParam<SandboxLevel> {};

TEST_P(RunnerLevels, EveryLevelComputesAndNamesItsWeaknesses) {
  if (GetParam() > best_sandbox()) GTEST_SKIP() << "this machine offers less";
  auto started = start_runner_at(options_for("deeds", 2), GetParam());
  ASSERT_TRUE(started.ok()) << started.error().text();
  ASSERT_TRUE(started->ok()) << started->failure.sentence;
  Runner& runner = **started->value;
  EXPECT_EQ(runner.sandbox(), GetParam());
  EXPECT_EQ(runner.weaknesses().empty(), GetParam() == SandboxLevel::namespaces);
  const auto planned = runner.plan(0, shapes(), axes(Deed::honest), kPatience_s);
  ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
  ASSERT_TRUE(runner.lay_out(shapes(), 1).ok());
  fill_inputs(runner.slot(0), 2);
  ASSERT_TRUE(runner.call(planned.value->plan_id, 0, kPatience_s).ok());
  expect_right(runner.slot(0), 2);
}

INSTANTIATE_TEST_SUITE_P(All, RunnerLevels,
                         ::testing::Values(SandboxLevel::none, SandboxLevel::rlimits,
                                           SandboxLevel::landlock_seccomp,
                                           SandboxLevel::namespaces));

TEST(Runner, ScratchMemoryForgetsWhenItIsRefilled) {
  const auto runner = start_runner(options_for("deeds"));
  ASSERT_TRUE(runner);
  const auto planned = runner->plan(0, shapes(), axes(Deed::remember_in_scratch), kPatience_s);
  ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
  const int plan = planned.value->plan_id;
  ASSERT_TRUE(runner->lay_out(shapes(), 1).ok());
  fill_inputs(runner->slot(0), 1);
  ASSERT_TRUE(runner->call(plan, 0, kPatience_s).ok());
  ASSERT_TRUE(runner->call(plan, 0, kPatience_s).ok());
  EXPECT_EQ(runner->slot(0).outputs[0].f32()[0], 1) << "it is the same memory in every call";
  runner->refill_scratch(planned.value->scratch_bytes, 5);
  ASSERT_TRUE(runner->call(plan, 0, kPatience_s).ok());
  EXPECT_EQ(runner->slot(0).outputs[0].f32()[0], 0);
}

TEST(Runner, OutputsThatStayPoisonedAreNamed) {
  const auto runner = start_runner(options_for("deeds"));
  ASSERT_TRUE(runner);
  const auto planned = runner->plan(0, shapes(), axes(Deed::writes_nothing), kPatience_s);
  ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
  ASSERT_TRUE(runner->lay_out(shapes(), 1).ok());
  runner->poison(0, 77);
  ASSERT_TRUE(runner->call(planned.value->plan_id, 0, kPatience_s).ok());
  EXPECT_EQ(runner->find_unwritten(0), "H element 0 was never written");
  EXPECT_FALSE(runner->inspect(0));
}

TEST(Runner, NotesAreReadAsPlainText) {
  const auto runner = start_runner(options_for("deeds"));
  ASSERT_TRUE(runner);
  const auto planned = runner->plan(0, shapes(), axes(Deed::plan_takes_notes), kPatience_s);
  ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
  EXPECT_EQ(planned.value->notes.at("core"), "generic core");
  EXPECT_FALSE(planned.value->notes.at("process").empty());
}

pid_t process_of(Runner& runner) {
  const auto planned = runner.plan(0, shapes(), axes(Deed::plan_takes_notes), kPatience_s);
  return planned.ok() ? std::stoi(planned.value->notes.at("process")) : -1;
}

TEST(Runner, AKillFromOutsideIsTheEnginesTroubleAndNoHang) {
  const auto runner = start_runner(options_for("deeds"));
  ASSERT_TRUE(runner);
  const auto planned = runner->plan(0, shapes(), axes(Deed::hang), kPatience_s);
  ASSERT_TRUE(planned.ok()) << planned.failure.sentence;
  ASSERT_TRUE(runner->lay_out(shapes(), 1).ok());
  const pid_t process = process_of(*runner);
  ASSERT_GT(process, 0);
  std::thread killer([process] { kill(process, SIGKILL); });
  const auto time = runner->call(planned.value->plan_id, 0, kPatience_s);
  killer.join();
  ASSERT_FALSE(time.ok());
  EXPECT_EQ(time.failure.verdict, Verdict::engine_failed);
  EXPECT_THAT(time.failure.sentence, HasSubstr("killed from outside"));
  EXPECT_EQ(runner->empty_call().failure.verdict, Verdict::engine_failed);
}

TEST(Runner, NothingIsLeftBehind) {
  pid_t process = -1;
  {
    const auto runner = start_runner(options_for("deeds", 2));
    ASSERT_TRUE(runner);
    process = process_of(*runner);
    ASSERT_GT(process, 0);
    EXPECT_EQ(kill(process, 0), 0);
  }
  EXPECT_NE(kill(process, 0), 0);
}

TEST(Runner, TheProcessHasNoDescriptorsBeyondItsOutput) {
  const auto runner = start_runner(options_for("deeds"));
  ASSERT_TRUE(runner);
  const pid_t process = process_of(*runner);
  int descriptors = 0;
  std::error_code trouble;
  const std::filesystem::path folder = "/proc/" + std::to_string(process) + "/fd";
  for (const auto& entry : std::filesystem::directory_iterator(folder, trouble)) {
    (void)entry;
    ++descriptors;
  }
  if (trouble) GTEST_SKIP() << "only root may look into the process";
  EXPECT_EQ(descriptors, 3);
}

TEST(RunnerOptionsChecks, MistakesOfTheCallerAreErrors) {
  RunnerOptions options = options_for("deeds");
  options.runner = "/no/such/runner";
  EXPECT_THAT(Runner::start(options).error().text(), HasSubstr("no runner at /no/such/runner"));

  options = options_for("no_such_candidate");
  EXPECT_THAT(Runner::start(options).error().text(), HasSubstr("no module at"));

  options = options_for("deeds");
  options.memory_bytes = 1 << 20;
  EXPECT_THAT(Runner::start(options).error().text(), HasSubstr("raise memory_bytes"));

  options = options_for("deeds");
  options.workers = 0;
  EXPECT_THAT(Runner::start(options).error().text(), HasSubstr("0 workers"));
}

TEST(Runner, ALayoutBeyondTheCapacityIsAnError) {
  const auto runner = start_runner(options_for("deeds"));
  ASSERT_TRUE(runner);
  EXPECT_THAT(runner->lay_out(shapes(100'000'000), 1).error().text(),
              HasSubstr("capacity of the largest case"));
}

}  // namespace
}  // namespace kbeam
