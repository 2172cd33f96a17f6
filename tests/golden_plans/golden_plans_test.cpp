// Compares the plans that manifest.json lists with the files beside it, and holds what ships to the
// rules of shipping. With KBEAM_UPDATE_GOLDEN_PLANS=1 it writes the files anew instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/expression.h"
#include "base/files.h"
#include "model/launch_plan.h"
#include "problem/problem_file.h"
#include "target/cuda/planner.h"
#include "target/cuda/planner_fixture.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fs::path kSource = KBEAM_SOURCE_DIR;
const fs::path kHere = kSource / "tests/golden_plans";

struct Golden {
  std::string source;
  std::string problem;
  bool ships = false;
  AxisValues axes;

  std::string name() const {
    std::string text = fs::path(source).stem().string();
    for (const auto& [axis, value] : axes) text += "." + axis + std::to_string(value);
    return text;
  }
  fs::path file() const { return kHere / (name() + ".json"); }
  fs::path module() const {
    std::string target = "golden_" + source;
    for (char& letter : target)
      if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
    return fs::path(KBEAM_BINARY_DIR) / "tests/golden_plans" / (target + ".so");
  }
};
void PrintTo(const Golden& golden, std::ostream* stream) {
  *stream << golden.name();
}

Json read_json(const fs::path& path) {
  const auto text = read_file(path);
  return text.ok() ? Json::parse(*text, nullptr, /*allow_exceptions=*/false) : Json();
}

std::vector<Golden> manifest() {
  const Json listed = read_json(kHere / "manifest.json");
  std::vector<Golden> all;
  for (const Json& entry : listed.at("plans"))
    for (const Json& shape : entry.at("shapes"))
      all.push_back({entry.at("source").get<std::string>(), entry.value("problem", ""),
                     entry.at("ships").get<bool>(), shape.get<AxisValues>()});
  return all;
}

// Without a problem it is one of the planner's own test modules.
Result<PlanRequest> request_of(const Golden& golden) {
  PlanRequest request =
      golden.problem.empty()
          ? test_plan_request(golden.module(), golden.axes.at("batch"), golden.axes.at("n"))
          : PlanRequest{};
  request.module = golden.module();
  request.may_use_libraries = !golden.ships;
  if (golden.problem.empty()) return request;
  ASSIGN_OR_RETURN(const LoadedProblem loaded, load_problem(kSource / "problems" / golden.problem));
  request.axes = golden.axes;
  for (const Axis& axis : loaded.problem.axes)
    if (!axis.derived_from.empty()) {
      ASSIGN_OR_RETURN(request.axes[axis.name],
                       evaluate_expression(axis.derived_from, request.axes));
    }
  request.tensors = tensor_shapes(loaded.problem, request.axes);
  return request;
}

// What is the same after every build: no image, no mangled names.
Json stable_form(const LaunchPlan& plan) {
  Json json = to_json(plan);
  json.erase("image_hash");
  json.erase("device_hash");
  for (Json& node : json["nodes"]) node.erase("kernel");
  return json;
}

// Why a plan, as a golden file has it, may not be in the shipped library.
std::vector<std::string> obstacles_to_shipping(const Json& golden) {
  std::vector<std::string> found;
  for (const Json& node : golden.at("nodes")) {
    const std::string kind = node.at("kind").get<std::string>();
    if (kind == "gemm" || kind == "vendor_call") found.push_back("calls a library: " + kind);
    if (kind == "conditional") found.push_back("has a conditional node");
  }
  if (!golden.at("conditions").empty()) found.push_back("has a condition");
  return found;
}

class GoldenPlan : public ::testing::TestWithParam<Golden> {};

TEST_P(GoldenPlan, IsAsStored) {
  const auto request = request_of(GetParam());
  ASSERT_TRUE(request.ok()) << request.error().text();
  const auto answers = make_launch_plans(test_planner_options(), {*request});
  ASSERT_TRUE(answers.ok()) << answers.error().text();
  ASSERT_TRUE(answers->front().plan.has_value()) << answers->front().sentence;
  const std::string text = stable_form(*answers->front().plan).dump(1) + "\n";
  if (std::getenv("KBEAM_UPDATE_GOLDEN_PLANS") != nullptr) {
    const auto written = write_file(GetParam().file(), text);
    ASSERT_TRUE(written.ok()) << written.error().text();
    return;
  }
  const auto stored = read_file(GetParam().file());
  ASSERT_TRUE(stored.ok()) << stored.error().text() << "\nupdate_golden_plans writes it";
  if (*stored == text) return;
  const Json before = Json::parse(*stored, nullptr, /*allow_exceptions=*/false);
  FAIL() << "the plan is not the stored one; if that is meant: ninja update_golden_plans\n"
         << Json::diff(before, Json::parse(text)).dump(1).substr(0, 2000);
}
INSTANTIATE_TEST_SUITE_P(Manifest, GoldenPlan, ::testing::ValuesIn(manifest()),
                         [](const auto& golden) {
                           std::string name = golden.param.name();
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(GoldenPlans, WhatShipsCallsNoLibrary) {
  for (const Golden& golden : manifest()) {
    if (!golden.ships) continue;
    EXPECT_THAT(obstacles_to_shipping(read_json(golden.file())), IsEmpty()) << golden.name();
  }
}

// The scan above sees what it looks for.
TEST(GoldenPlans, TheScanFindsLibrariesAndConditions) {
  const Json plan = read_json(kHere / "every_feature.batch4.n64.json");
  ASSERT_TRUE(plan.is_object());
  const std::string found = testing::PrintToString(obstacles_to_shipping(plan));
  EXPECT_THAT(found, AllOf(HasSubstr("gemm"), HasSubstr("vendor_call"),
                           HasSubstr("a conditional node"), HasSubstr("a condition\"")));
}

// Shipped CUDA kernels are the candidates' own files, published ones and rows of the library: each
// has golden plans.
TEST(GoldenPlans, EveryShippedKernelIsListed) {
  std::vector<std::string> shipped;
  for (const auto& entry : fs::recursive_directory_iterator(kSource / "campaigns"))
    if (entry.path().extension() == ".cu")
      shipped.push_back(entry.path().lexically_relative(kSource).generic_string());
  const Json rows = read_json(kSource / "kernels/src/qr/cuda_rows.json");
  ASSERT_TRUE(rows.is_object());
  for (const Json& row : rows.at("rows")) shipped.push_back(row.at("source").get<std::string>());
  const std::vector<Golden> all = manifest();
  for (const std::string& source : shipped)
    EXPECT_TRUE(
        std::any_of(all.begin(), all.end(),
                    [&](const Golden& golden) { return golden.ships && golden.source == source; }))
        << source << " is in no shipping entry of tests/golden_plans/manifest.json";
}

TEST(GoldenPlans, NoFileIsLeftOver) {
  std::vector<std::string> expected{"manifest.json"};
  for (const Golden& golden : manifest()) expected.push_back(golden.name() + ".json");
  for (const auto& entry : fs::directory_iterator(kHere)) {
    if (entry.path().extension() != ".json") continue;
    EXPECT_THAT(expected, ::testing::Contains(entry.path().filename().string()));
  }
}

}  // namespace
}  // namespace kbeam
