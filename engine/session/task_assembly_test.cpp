// Tasks from modules of the planner's own tests; nothing here needs a device.
#include "session/task_assembly.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kbeam/problem.h>

#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "target/cuda/planner_fixture.h"
#include "target/cuda/test_modules/planner_deeds.h"

namespace kbeam {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CostOnly final : public ProblemCode {
 public:
  void generate(const CaseView&, std::uint64_t, std::span<const TensorView>) override {}
  void freshen(const CaseView&, std::uint64_t, std::span<const TensorView>,
               std::span<const TensorView>) override {}
  void check(const CaseView&, const CheckRequest&, std::span<const TensorView>,
             std::span<const TensorView>, CheckSink&) override {}
  double flops(const CaseView& the_case) override {
    return static_cast<double>(the_case.axis("n"));
  }
  double bytes(const CaseView&) override { return 8; }
};

Case make_case(const std::string& name, std::int64_t n, PlannerDeed deed = PlannerDeed::honest) {
  return {.name = name,
          .axes = {{"batch", 4}, {"n", n}, {"deed", static_cast<std::int64_t>(deed)}},
          .family = "dense"};
}

class TaskAssembly : public ::testing::Test {
 protected:
  TaskAssembly() {
    problem_.name = "rows";
    problem_.content_hash = "hash";
    problem_.regime_axis = "n";
    problem_.tensors = {{"x", KBEAM_INPUT, KBEAM_F32, {"batch", "n"}, {}},
                        {"y", KBEAM_OUTPUT, KBEAM_F32, {"batch", "n"}, {}}};
    auto folder = make_temporary_folder(std::filesystem::temp_directory_path(), "kbeam-assembly-");
    if (folder.ok()) folder_ = *folder;
    request_.problem = &problem_;
    request_.code = &code_;
    request_.planner = test_planner_options();
    request_.kind = TaskKind::check;
    request_.candidate = subject("mine", {"planner_deeds"});
    request_.check_cases = {make_case("small", 64)};
    request_.grade = "strict";
    request_.problem_module = "/problem.so";
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  static CudaSubject subject(const std::string& id, const std::vector<std::string>& modules) {
    CudaSubject made;
    made.id = id;
    for (const std::string& module : modules) {
      made.modules.push_back(test_module(module));
      made.rows.emplace_back();
    }
    return made;
  }
  AssembledTask assemble() {
    auto made = assemble_task(request_, folder_ / "images");
    EXPECT_TRUE(made.ok()) << made.error().text();
    return made.ok() ? std::move(*made) : AssembledTask{};
  }
  bool use_cuda_modules() {
    if (!std::filesystem::exists(test_module("every_feature"))) return false;
    request_.candidate = subject("mine", {"every_feature"});
    request_.candidate.may_use_libraries = true;
    request_.problem_cuda_module = test_module("every_feature");
    return true;
  }

  Problem problem_;
  CostOnly code_;
  TaskRequest request_;
  std::filesystem::path folder_;
};

TEST_F(TaskAssembly, SmallCasesStayWithTheHost) {
  const AssembledTask made = assemble();
  ASSERT_FALSE(made.refused.has_value()) << made.refused->reason;
  EXPECT_THAT(find_task_mistakes(made.task), IsEmpty());
  ASSERT_EQ(made.task.cases.size(), 1U);
  EXPECT_EQ(made.task.cases[0].generate_plan, "");
  EXPECT_EQ(made.task.cases[0].flops, 64);
  EXPECT_EQ(made.files.problem_module, "/problem.so");
  EXPECT_EQ(made.files.plans.size(), 1U);
  EXPECT_EQ(made.task.seal_key.size(), 64U);
  EXPECT_NE(made.task.secret_seed, assemble().task.secret_seed);
}

TEST_F(TaskAssembly, AFailingPlanIsTheCandidatesVerdict) {
  request_.check_cases.push_back(make_case("odd", 65, PlannerDeed::throws));
  const AssembledTask made = assemble();
  ASSERT_TRUE(made.refused.has_value());
  EXPECT_EQ(made.refused->verdict, Verdict::bad_plan);
  EXPECT_THAT(made.refused->reason, HasSubstr("case odd (dense): the plan function threw"));
  EXPECT_EQ(made.refused->candidate_id, "mine");
}

TEST_F(TaskAssembly, APrivateCaseTellsNothing) {
  request_.check_cases.push_back(make_case("hidden", 65, PlannerDeed::throws));
  request_.check_cases.back().pool = Pool::private_pool;
  const AssembledTask made = assemble();
  ASSERT_TRUE(made.refused.has_value());
  EXPECT_EQ(made.refused->verdict, Verdict::failed_private);
  EXPECT_EQ(made.refused->reason, "failed a private case");
}

TEST_F(TaskAssembly, CasesThatAreNotServedSayWhy) {
  request_.check_cases.push_back(make_case("other", 65, PlannerDeed::is_not_supported));
  const AssembledTask made = assemble();
  ASSERT_FALSE(made.refused.has_value());
  EXPECT_EQ(made.task.candidate.not_supported.at("other"), "only for other shapes");
  EXPECT_THAT(find_task_mistakes(made.task), IsEmpty());
  request_.check_cases.erase(request_.check_cases.begin());
  const AssembledTask none = assemble();
  ASSERT_TRUE(none.refused.has_value());
  EXPECT_EQ(none.refused->verdict, Verdict::not_supported);
}

TEST_F(TaskAssembly, AReferenceThatCannotBePlannedIsNobodysVerdict) {
  request_.kind = TaskKind::compare;
  request_.rule = device_rules().screen;
  request_.timed_cases = {make_case("timed", 128)};
  request_.reference = subject("old", {"planner_exits_at_load"});
  const auto made = assemble_task(request_, folder_ / "images");
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.error().text(), HasSubstr("for the reference old"));
  request_.reference = subject("old", {"planner_deeds"});
  const AssembledTask good = assemble();
  ASSERT_TRUE(good.task.reference.has_value());
  EXPECT_EQ(good.task.reference->plan_of_case.count("timed"), 1U);
  EXPECT_EQ(good.task.reference->plan_of_case.count("small"), 0U);
  EXPECT_THAT(find_task_mistakes(good.task), IsEmpty());
}

TEST_F(TaskAssembly, TimedAndLargeCasesGoToTheDevice) {
  if (!use_cuda_modules()) GTEST_SKIP() << "no CUDA toolkit";
  request_.kind = TaskKind::compare;
  request_.rule = device_rules().screen;
  request_.most_host_elements = 1000;
  request_.check_cases.push_back(make_case("large", 1024));
  request_.timed_cases = {make_case("timed", 128)};
  request_.reference = request_.candidate;
  const AssembledTask made = assemble();
  ASSERT_FALSE(made.refused.has_value()) << made.refused->reason;
  EXPECT_THAT(find_task_mistakes(made.task), IsEmpty());
  const auto& cases = made.task.cases;
  ASSERT_EQ(cases.size(), 3U);
  EXPECT_EQ(cases[0].generate_plan, "");
  EXPECT_NE(cases[1].generate_plan, "");
  EXPECT_NE(cases[1].full_check_plan, "");
  EXPECT_EQ(cases[1].quick_check_plan, "");
  EXPECT_NE(cases[2].quick_check_plan, "");
  EXPECT_EQ(made.files.images.size(), 1U);

  // What was assembled is what a folder gives back.
  std::ofstream(folder_ / "problem.so") << "module";
  AssembledTask written = made;
  written.files.problem_module = folder_ / "problem.so";
  const auto wrote = write_task_folder(written.task, written.files, folder_ / "task");
  ASSERT_TRUE(wrote.ok()) << wrote.error().text();
  const auto loaded = read_task_folder(folder_ / "task");
  ASSERT_TRUE(loaded.ok()) << loaded.error().text();
  EXPECT_EQ(loaded->plans.size(), made.files.plans.size());
}

TEST_F(TaskAssembly, EachRegimeHasItsOwnRow) {
  if (!use_cuda_modules()) GTEST_SKIP() << "no CUDA toolkit";
  request_.candidate = subject("mine", {"planner_deeds", "every_feature"});
  request_.candidate.may_use_libraries = true;
  request_.candidate.rows[0].axis_most = 100;
  request_.candidate.rows[1].axis_least = 101;
  request_.check_cases.push_back(make_case("wide", 128));
  const AssembledTask made = assemble();
  ASSERT_FALSE(made.refused.has_value()) << made.refused->reason;
  const auto& plans = made.files.plans;
  EXPECT_EQ(plans.at(made.task.candidate.plan_of_case.at("small")).image_hash, "");
  EXPECT_NE(plans.at(made.task.candidate.plan_of_case.at("wide")).image_hash, "");
}

TEST_F(TaskAssembly, WhatARowDoesNotSupportGoesToTheNextThatMay) {
  if (!use_cuda_modules()) GTEST_SKIP() << "no CUDA toolkit";
  request_.candidate = subject("mine", {"planner_deeds", "every_feature"});
  request_.candidate.may_use_libraries = true;
  request_.candidate.rows[0].axis_most = 100;
  request_.candidate.rows[1].axis_least = 101;
  request_.check_cases = {make_case("own", 64),
                          make_case("refused", 64, PlannerDeed::is_not_supported)};
  const AssembledTask made = assemble();
  ASSERT_FALSE(made.refused.has_value()) << made.refused->reason;
  EXPECT_THAT(made.task.candidate.not_supported, IsEmpty());
  const auto& plans = made.files.plans;
  EXPECT_EQ(plans.at(made.task.candidate.plan_of_case.at("own")).image_hash, "");
  EXPECT_NE(plans.at(made.task.candidate.plan_of_case.at("refused")).image_hash, "");
  EXPECT_THAT(find_task_mistakes(made.task), IsEmpty());
}

TEST_F(TaskAssembly, WhatNoRowSupportsIsAsTheOwnRowSays) {
  request_.candidate = subject("mine", {"planner_deeds", "planner_deeds"});
  request_.candidate.rows[0].axis_most = 100;
  request_.candidate.rows[1].axis_least = 101;
  request_.check_cases.push_back(make_case("other", 65, PlannerDeed::is_not_supported));
  const AssembledTask made = assemble();
  ASSERT_FALSE(made.refused.has_value());
  EXPECT_EQ(made.task.candidate.not_supported.at("other"), "only for other shapes");
}

TEST_F(TaskAssembly, WhatMustShipHasNoConditions) {
  if (!use_cuda_modules()) GTEST_SKIP() << "no CUDA toolkit";
  request_.allow_conditions = false;
  const AssembledTask made = assemble();
  ASSERT_TRUE(made.refused.has_value());
  EXPECT_THAT(made.refused->reason, HasSubstr("conditional nodes, which cannot ship"));
}

}  // namespace
}  // namespace kbeam
