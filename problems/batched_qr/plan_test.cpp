// problem.cu and the CUDA candidates as nvcc builds them and the planner records them: no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/problem.h"
#include "problem/problem_file.h"
#include "target/cuda/planner.h"

namespace kbeam::qr_test {
namespace {

namespace fs = std::filesystem;

const Problem& cuda_problem() {
  static const Problem seen = [] {
    const Result<LoadedProblem> loaded = load_problem(KBEAM_PROBLEM_FOLDER);
    if (!loaded.ok()) throw std::runtime_error("problem.toml cannot be read");
    return for_target(loaded->problem, "cuda");
  }();
  return seen;
}

PlannerOptions options() {
  PlannerOptions made;
  made.planner = fs::path(KBEAM_BINARY_DIR) / "kbeam-planner";
  made.device_description = fs::path(KBEAM_SOURCE_DIR) / "contract/devices/h200.json";
  made.timeout_s = 120;
  return made;
}

PlanRequest request_for(const std::string& module, PlanEntry entry, const Case& the_case) {
  PlanRequest request;
  request.module = fs::path(KBEAM_MODULE_FOLDER) / ("batched_qr_cuda_" + module + ".so");
  request.entry = entry;
  request.tensors = tensor_shapes(cuda_problem(), the_case.axes);
  request.axes = the_case.axes;
  return request;
}

std::vector<Planned> plan_all(const std::vector<PlanRequest>& requests) {
  Result<std::vector<Planned>> answers = make_launch_plans(options(), requests);
  if (!answers.ok()) throw std::runtime_error(answers.error().text());
  return std::move(*answers);
}

TEST(ProblemCu, PlansTheInputsOfEveryCase) {
  std::vector<PlanRequest> requests;
  for (const Case& one : cuda_problem().cases) {
    requests.push_back(request_for("problem", PlanEntry::generate, one));
    requests.back().texts = {{"family", one.family}};
  }
  const std::vector<Planned> answers = plan_all(requests);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i].plan.has_value())
        << cuda_problem().cases[i].name << ": " << answers[i].sentence;
    EXPECT_EQ(answers[i].plan->nodes.size(), 1u);
  }
}

class ProblemCuChecks : public testing::TestWithParam<std::string> {};

TEST_P(ProblemCuChecks, ArePlannedForEveryCaseAtBothGrades) {
  std::vector<PlanRequest> requests;
  std::vector<std::string> names;
  for (const Case& one : cuda_problem().cases)
    for (const char* grade : {"fp32", "contest"}) {
      requests.push_back(request_for("problem", PlanEntry::check, one));
      requests.back().texts = {{"grade", grade}, {"depth", GetParam()}};
      names.push_back(one.name + ", " + grade);
    }
  const std::vector<Planned> answers = plan_all(requests);
  const bool quick = GetParam() == "quick";
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i].plan.has_value()) << names[i] << ": " << answers[i].sentence;
    const LaunchPlan& plan = *answers[i].plan;
    EXPECT_EQ(plan.uses_conditions(), quick);
    EXPECT_FALSE(plan.uses_library());
    EXPECT_EQ(plan.figures.size(), quick ? 9u : 7u);
    EXPECT_LT(plan.scratch_bytes(), 8LL << 30) << names[i];
  }
}
INSTANTIATE_TEST_SUITE_P(Depth, ProblemCuChecks, testing::Values("full", "quick"),
                         [](const testing::TestParamInfo<std::string>& depth) {
                           return depth.param;
                         });

std::vector<std::string> candidate_modules() {
  std::vector<std::string> modules;
  for (const char* folder : {"known_good_cuda", "known_wrong_cuda"})
    for (const auto& entry : fs::directory_iterator(fs::path(KBEAM_PROBLEM_FOLDER) / folder))
      modules.push_back(std::string(folder) + "-" + entry.path().stem().string());
  std::sort(modules.begin(), modules.end());
  return modules;
}

// The largest shapes take thousands of nodes: the longest plan that a candidate may have.
TEST(KnownCudaCandidates, ArePlannedForTheSmallestAndTheLargestCases) {
  for (const std::string& module : candidate_modules()) {
    std::vector<PlanRequest> requests;
    for (const char* name : {"b20_n32", "b640_n512", "b2_n4096", "shape_1x1", "cuda_1x3000x7"}) {
      const Case* one = cuda_problem().find_case(name);
      ASSERT_NE(one, nullptr) << name;
      requests.push_back(request_for(module, PlanEntry::candidate, *one));
    }
    for (const Planned& answer : plan_all(requests))
      EXPECT_TRUE(answer.plan.has_value()) << module << ": " << answer.sentence;
  }
}

}  // namespace
}  // namespace kbeam::qr_test
