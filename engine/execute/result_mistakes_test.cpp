#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "execute/evaluation_task.h"
#include "execute/task_fixture.h"
#include "execute/task_progress.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class ResultMistakes : public testing::Test {
 protected:
  void SetUp() override {
    root_ = *make_temporary_folder(fs::temp_directory_path(), "task-");
    fs::create_directory(root_ / "parts");
    const TaskForTests made = task_for_tests(root_ / "parts");
    ASSERT_TRUE(write_task_folder(made.task, made.files, root_ / "task").ok());
    task_ = *read_task_folder(root_ / "task");
  }
  void TearDown() override { fs::remove_all(root_); }

  using Spoil = std::function<void(TaskResult&)>;
  // What reading says of the result when it was spoilt before it was sealed.
  std::string refusal(const Spoil& spoil) {
    TaskResult result = result_for_tests(task_);
    spoil(result);
    EXPECT_TRUE(write_result(task_.task, result, root_ / "task").ok());
    const auto read = read_result(task_, root_ / "task");
    return read.ok() ? "" : read.error().happened;
  }
  std::string refusal_of_samples(const std::function<void(PairedSamples&)>& spoil) {
    return refusal([&](TaskResult& one) { spoil(one.evaluation.measurements.front().samples); });
  }

  fs::path root_;
  LoadedTask task_;
};

TEST_F(ResultMistakes, AnHonestResultHasNone) {
  EXPECT_EQ(refusal([](TaskResult&) {}), "");
  EXPECT_EQ(refusal([](TaskResult& one) {
              one.evaluation.verdict = Verdict::wrong_value;
              one.evaluation.checks.front().verdict = Verdict::wrong_value;
              one.evaluation.measurements.clear();
            }),
            "");
  EXPECT_EQ(refusal_of_samples([](PairedSamples& samples) {  // ended after the first process
              samples.candidate_ns.resize(8);
              samples.reference_ns.resize(8);
              samples.candidate_first.resize(8);
              samples.process.assign(8, 0);
            }),
            "");
}

TEST_F(ResultMistakes, TimesAreAboveZeroAndFinite) {
  for (const double ns : {0.0, -1.0, -0.0, kNan, kInfinity, -kInfinity}) {
    EXPECT_THAT(refusal_of_samples([ns](PairedSamples& one) { one.candidate_ns[3] = ns; }),
                HasSubstr("it cannot stand: case large has a time of "))
        << ns;
    EXPECT_THAT(refusal_of_samples([ns](PairedSamples& one) { one.reference_ns.back() = ns; }),
                HasSubstr("case large has a time of "))
        << ns;
    EXPECT_THAT(refusal([ns](TaskResult& one) { one.case_samples_ns["large"][1] = ns; }),
                HasSubstr("case large has a time of "))
        << ns;
  }
}

TEST_F(ResultMistakes, SamplesComeInPairs) {
  for (const auto& spoil : std::vector<std::function<void(PairedSamples&)>>{
           [](PairedSamples& one) { one.candidate_ns.pop_back(); },
           [](PairedSamples& one) { one.reference_ns.push_back(1); },
           [](PairedSamples& one) { one.candidate_first.clear(); },
           [](PairedSamples& one) { one.process.pop_back(); },
           [](PairedSamples& one) { one = {}; }})
    EXPECT_THAT(refusal_of_samples(spoil), HasSubstr("they come in pairs"));
}

TEST_F(ResultMistakes, PairsAreThoseOfTheRule) {
  for (const auto& spoil : std::vector<std::function<void(PairedSamples&)>>{
           [](PairedSamples& one) { one.process[0] = -1; },
           [](PairedSamples& one) { one.process[0] = 3; },
           [](PairedSamples& one) { one.process[0] = 1; }})
    EXPECT_THAT(refusal_of_samples(spoil), HasSubstr("more pairs or processes than the rule's"));
  EXPECT_THAT(refusal_of_samples([](PairedSamples& one) { one.candidate_first[0] = 2; }),
              HasSubstr("has the order 2"));
}

TEST_F(ResultMistakes, TheNoiseFloorIsAtLeastTheTasks) {
  for (const double floor : {-1.0, 0.0, 0.004, kNan, kInfinity})
    EXPECT_THAT(refusal([floor](TaskResult& one) {
                  one.evaluation.measurements.front().noise_floor = floor;
                }),
                HasSubstr("noise floor"))
        << floor;
  task_.task.noise["large"] = 0.02;
  EXPECT_THAT(find_result_mistakes(task_.task, result_for_tests(task_)),
              ElementsAre("case large has the noise floor 0.005; it is 0.02 at least"));
}

TEST_F(ResultMistakes, MeasurementsAreThoseOfTheTask) {
  const auto measurement = [&](const std::function<void(Measurement&)>& spoil) {
    return refusal([&](TaskResult& one) { spoil(one.evaluation.measurements.front()); });
  };
  EXPECT_THAT(measurement([](Measurement& one) { one.case_name = "small"; }),
              HasSubstr("case small is measured, for which the task did not ask"));
  EXPECT_THAT(measurement([](Measurement& one) { one.reference = "a slow one"; }),
              HasSubstr("against a slow one, not the task's reference"));
  EXPECT_THAT(measurement([](Measurement& one) { one.threads = 0; }), HasSubstr("on 0 threads"));
  EXPECT_THAT(refusal([](TaskResult& one) {
                auto& all = one.evaluation.measurements;
                all.push_back(all.front());
              }),
              HasSubstr("case large is measured twice"));
  EXPECT_THAT(refusal([](TaskResult& one) { one.evaluation.measurements.clear(); }),
              HasSubstr("it was accepted, but case large was not measured"));
}

TEST_F(ResultMistakes, AnAcceptedCandidatePassedEveryCheck) {
  EXPECT_THAT(refusal([](TaskResult& one) { one.evaluation.checks.pop_back(); }),
              HasSubstr("it was accepted, but case hidden was not checked"));
  EXPECT_THAT(
      refusal([](TaskResult& one) { one.evaluation.checks[0].verdict = Verdict::wrong_value; }),
      HasSubstr("it was accepted, but case small was not: "));
  EXPECT_THAT(refusal([](TaskResult& one) { one.evaluation.checks[0].case_name = "x"; }),
              HasSubstr("it reports on case x, which the task does not have"));
  EXPECT_THAT(refusal([](TaskResult& one) { one.device.multiprocessors = 20; }),
              HasSubstr("it is of sm_90 with 20 multiprocessors"));
}

TEST_F(ResultMistakes, ItSaysNoMoreThanAWorkerDoes) {
  EXPECT_THAT(refusal([](TaskResult& one) { one.evaluation.gates.emplace(); }),
              HasSubstr("gates or pools"));
  EXPECT_THAT(refusal([](TaskResult& one) { one.evaluation.sealed_pool.emplace(); }),
              HasSubstr("gates or pools"));
  EXPECT_THAT(refusal([](TaskResult& one) { one.evaluation.sandbox = SandboxLevel::namespaces; }),
              HasSubstr("it claims the sandbox namespaces"));
  EXPECT_THAT(refusal([](TaskResult& one) { one.wall_s = -1; }), HasSubstr("took -1 s"));
}

TEST_F(ResultMistakes, MediansAreThoseOfTheirTimes) {
  EXPECT_THAT(refusal([](TaskResult& one) { one.case_ns["large"] = 1; }),
              HasSubstr("the median 1 ns, which is not that of its times"));
  EXPECT_THAT(refusal([](TaskResult& one) { one.case_ns["small"] = 1; }),
              HasSubstr("case small has the median 1 ns"));
  EXPECT_THAT(refusal([](TaskResult& one) { one.case_least_ns["large"] = 1; }),
              HasSubstr("the least time 1 ns, which is not that of its times"));
}

// A worker makes statistics of it before anything else looks.
TEST_F(ResultMistakes, ProgressIsHeldToItsSamplesToo) {
  SavedProgress progress;
  progress.now.so_far = progress.last_good.so_far = result_for_tests(task_);
  // Not summarised yet.
  progress.now.so_far.evaluation.measurements.front().noise_floor = 0;
  ASSERT_TRUE(write_progress(task_.task, progress, root_ / "task").ok());
  EXPECT_TRUE(read_progress(task_, root_ / "task").ok());
  progress.now.so_far.evaluation.measurements.front().samples.reference_ns.pop_back();
  ASSERT_TRUE(write_progress(task_.task, progress, root_ / "task").ok());
  EXPECT_THAT(read_progress(task_, root_ / "task").error().happened,
              HasSubstr("they come in pairs"));
}

}  // namespace
}  // namespace kbeam
