#include "report/profile.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

PlanNode kernel_node(const std::string& kernel, std::uint32_t blocks, std::vector<int> after) {
  PlanNode node;
  node.kernel = node.kernel_name = kernel;
  node.grid = {blocks, 1, 1};
  node.block = {256, 1, 1};
  node.dynamic_shared_bytes = 1024;
  node.after = std::move(after);
  return node;
}

// panel -> (update, update) -> panel, then a copy beside them.
LaunchPlan make_plan(std::uint32_t panel_blocks) {
  LaunchPlan plan;
  plan.nodes = {kernel_node("panel", panel_blocks, {}), kernel_node("update", 2640, {0}),
                kernel_node("update", 1320, {0}), kernel_node("panel", panel_blocks, {1, 2})};
  PlanNode copy;
  copy.kind = NodeKind::copy;
  plan.nodes.push_back(copy);
  return plan;
}

const std::map<std::string, ProfiledKernel> kKernels{
    {"panel", {"panel<32>", {.registers = 128, .static_shared_bytes = 512, .spill_bytes = 24}, {}}},
    {"update", {"update", {.registers = 64}, {{"fp32", 90}, {"load global", 10}}}}};

const DeviceCeilings kCeilings{.copy_tb_per_s = 4,
                               .fp32_tflop_per_s = 50,
                               .tf32_tflop_per_s = 350,
                               .fp16_tflop_per_s = 700,
                               .fp64_tflop_per_s = 60,
                               .replay_us = 3,
                               .dependent_node_us = 1};

CaseToProfile subject_of(const LaunchPlan& plan) {
  CaseToProfile subject{.case_name = "n512",
                        .flops = 5e10,
                        .bytes = 4e8,
                        .plan = plan,
                        .kernels = kKernels,
                        .multiprocessors = 132,
                        .ceilings = kCeilings};
  for (const PlanNode& node : plan.nodes)
    subject.fits.push_back(node.kind == NodeKind::kernel ? LaunchFit{2, 0.5, "registers"}
                                                         : LaunchFit{});
  return subject;
}

MeasuredCase measured(double panel_ns, double update_ns, double total_ns) {
  return {.case_name = "n512",
          .total_ns = total_ns,
          .nodes = {{0, "panel", panel_ns},
                    {1, "update", update_ns},
                    {2, "update", update_ns / 2},
                    {3, "panel", panel_ns},
                    {4, "", 10}},
          .counters = {}};
}

TEST(Profile, says_floors_chain_and_phases_of_a_plan) {
  const LaunchPlan plan = make_plan(264);
  const auto profile = profile_case(subject_of(plan));
  ASSERT_TRUE(profile.ok());
  EXPECT_EQ(profile->nodes, 5);
  EXPECT_EQ(profile->chain, 3);
  EXPECT_DOUBLE_EQ(*profile->memory_floor_ns, 1e5);
  EXPECT_DOUBLE_EQ(*profile->compute_floor_ns, 1e6);
  EXPECT_EQ(profile->compute_unit, "fp32");
  EXPECT_DOUBLE_EQ(*profile->launch_floor_ns, 5e3);
  EXPECT_DOUBLE_EQ(*profile->launch_share, 0.005);
  EXPECT_FALSE(profile->total_ns.has_value());
  ASSERT_EQ(profile->phases.size(), 3u);
  const ProfiledPhase& panel = profile->phases[0];
  EXPECT_EQ(panel.name, "panel<32>");
  EXPECT_EQ(panel.nodes, 2);
  EXPECT_EQ(panel.threads, 256);
  EXPECT_EQ(panel.shared_bytes, 1536);
  EXPECT_DOUBLE_EQ(panel.least_waves, 1);
  const ProfiledPhase& update = profile->phases[1];
  EXPECT_EQ(update.least_blocks, 1320);
  EXPECT_EQ(update.most_blocks, 2640);
  EXPECT_EQ(profile->phases[2].name, "copy");
}

TEST(Profile, without_times_it_names_the_first_suspect) {
  const LaunchPlan full = make_plan(264);
  EXPECT_THAT(profile_case(subject_of(full))->bottleneck,
              HasSubstr("panel<32> is the first suspect; it spills 24 bytes a thread"));
  const LaunchPlan narrow = make_plan(40);
  EXPECT_THAT(profile_case(subject_of(narrow))->bottleneck,
              HasSubstr("its smallest launch has 40 blocks for 132 multiprocessors"));
  CaseToProfile tiny = subject_of(full);
  tiny.flops = tiny.bytes = 1000;
  EXPECT_THAT(profile_case(tiny)->bottleneck,
              HasSubstr("a chain of 3 dependent nodes takes at least 5"));
  EXPECT_THAT(profile_case(tiny)->bottleneck, StartsWith("Not measured. "));
  const LaunchPlan empty;
  EXPECT_THAT(profile_case(subject_of(empty))->bottleneck, HasSubstr("launches nothing"));
}

TEST(Profile, times_decide_where_there_are_some) {
  const LaunchPlan plan = make_plan(264);
  CaseToProfile subject = subject_of(plan);
  subject.measured = measured(200e3, 2000e3, 3e6);
  const auto busy = profile_case(subject);
  ASSERT_TRUE(busy.ok());
  EXPECT_DOUBLE_EQ(*busy->critical_path_ns, 2.4e6);
  EXPECT_DOUBLE_EQ(*busy->gaps_ns, 0.6e6);
  EXPECT_EQ(busy->phases[0].name, "update");
  EXPECT_NEAR(*busy->phases[0].share, 3e6 / 3.40001e6, 1e-9);
  EXPECT_THAT(busy->bottleneck, HasSubstr("update takes 88 % of 3.00 ms, 3.0 x the floor"));

  subject.measured = measured(200e3, 300e3, 2e6);
  EXPECT_THAT(profile_case(subject)->bottleneck, StartsWith("Launches: 1.30 ms of 2.00 ms"));
  subject.measured = measured(100e3, 900e3, 1.15e6);
  EXPECT_THAT(profile_case(subject)->bottleneck, StartsWith("Arithmetic: 1.15 ms is 87 %"));
}

TEST(Profile, times_of_another_build_are_refused) {
  const LaunchPlan plan = make_plan(264);
  CaseToProfile subject = subject_of(plan);
  subject.measured = measured(1, 1, 1);
  subject.measured->nodes[1].kernel = "other";
  const auto other = profile_case(subject);
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::bad_input);
  EXPECT_THAT(other.error().text(), HasSubstr("its node 1 is 'other'"));
  subject.measured->nodes[1] = {99, "panel", 1};
  EXPECT_FALSE(profile_case(subject).ok());
}

TEST(Profile, tensor_instructions_and_library_calls_raise_the_arithmetic_ceiling) {
  LaunchPlan plan = make_plan(264);
  auto kernels = kKernels;
  kernels["update"].instructions.push_back({"wgmma", 4});
  CaseToProfile subject{.case_name = "n512",
                        .flops = 7e11,
                        .bytes = 4e8,
                        .plan = plan,
                        .fits = subject_of(plan).fits,
                        .kernels = kernels,
                        .multiprocessors = 132,
                        .ceilings = kCeilings};
  EXPECT_EQ(profile_case(subject)->compute_unit, "fp16");
  EXPECT_DOUBLE_EQ(*profile_case(subject)->compute_floor_ns, 1e6);
  PlanNode& gemm = plan.nodes[4];
  gemm.kind = NodeKind::gemm;
  gemm.gemm.compute = KBEAM_COMPUTE_TF32;
  EXPECT_EQ(profile_case(subject_of(plan))->compute_unit, "tf32");
}

TEST(Profile, a_worker_s_file_is_read_and_a_damaged_one_is_named) {
  const Json file = parse_json(R"({"device": "NVIDIA H200", "cases": [
      {"case": "n512", "total_ns": 12.5, "nodes": [{"node": 0, "kernel": "panel", "median_ns": 3}]},
      {"case": "n64", "total_ns": 1, "nodes": [],
       "counters": [{"kernel": "panel", "name": "dram", "value": 41.5}]}]})",
                               "a test")
                        .value();
  const auto read = measured_profile_from_json(file);
  ASSERT_TRUE(read.ok()) << read.error().text();
  EXPECT_EQ(read->cases[0].nodes[0].median_ns, 3);
  EXPECT_EQ(read->cases[1].counters[0].value, 41.5);
  Json damaged = file;
  damaged["cases"][0].erase("total_ns");
  EXPECT_THAT(measured_profile_from_json(damaged).error().text(), HasSubstr("cases[0].total_ns"));
}

TEST(Profile, measured_times_are_numbers_and_not_negative) {
  const Json file = parse_json(R"({"device": "NVIDIA H200", "cases": [{"case": "n512",
      "total_ns": 12.5, "nodes": [{"node": 0, "kernel": "panel", "median_ns": 0}]}]})",
                               "a test")
                        .value();
  ASSERT_TRUE(measured_profile_from_json(file).ok());
  for (const Json& time : {Json("nan"), Json("inf"), Json(-1), Json("-inf")}) {
    Json of_node = file, of_case = file;
    of_node["cases"][0]["nodes"][0]["median_ns"] = time;
    of_case["cases"][0]["total_ns"] = time;
    for (const Json& damaged : {of_node, of_case})
      EXPECT_THAT(measured_profile_from_json(damaged).error().text(),
                  HasSubstr("case n512 has a time that is negative or no number"));
  }
}

TEST(Profile, its_json_has_every_fact_and_null_for_what_is_unknown) {
  const LaunchPlan plan = make_plan(264);
  const Json json = to_json(*profile_case(subject_of(plan)));
  EXPECT_EQ(json["case"], "n512");
  EXPECT_EQ(json["phases"][0]["fit"]["limited_by"], "registers");
  EXPECT_TRUE(json["total_ns"].is_null());
  EXPECT_EQ(to_json(kKernels.at("update"))["instructions"][0]["unit"], "fp32");
}

TEST(Profile, every_device_description_has_ceilings_with_their_proof) {
  for (const auto& entry :
       std::filesystem::directory_iterator(KBEAM_SOURCE_DIR "/contract/devices")) {
    const auto description = parse_json(*read_file(entry.path()), entry.path().string());
    ASSERT_TRUE(description.ok());
    const auto ceilings = ceilings_from_json(*description);
    ASSERT_TRUE(ceilings.ok() && ceilings->has_value()) << entry.path();
    EXPECT_GT((*ceilings)->copy_tb_per_s, 0);
    EXPECT_FALSE((*ceilings)->proof.empty());
  }
  EXPECT_FALSE(ceilings_from_json(Json::object())->has_value());
}

}  // namespace
}  // namespace kbeam
