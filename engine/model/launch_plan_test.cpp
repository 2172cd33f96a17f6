#include "model/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace kbeam {
namespace {

using ::testing::HasSubstr;

LaunchPlan full_plan() {
  LaunchPlan plan;
  plan.image_hash = "aa";
  plan.device_hash = "bb";
  plan.buffers = {{BufferKind::input, "A", 4096, ""},
                  {BufferKind::zeroed_scratch, "scratch 0", 256, ""},
                  {BufferKind::scratch, "scratch 1", 1024, ""},
                  {BufferKind::table, "table 0", 3, std::string("\x00\xff\x7f", 3)}};
  PlanTensorMap map;
  map.base = {0, 256};
  map.rank = 2;
  map.dim = {32, 32, 0, 0, 0};
  map.stride_bytes = {0, 128, 0, 0, 0};
  plan.tensor_maps = {map};
  plan.conditions = {7};
  plan.figures = {{"residual", "eps", 10.5, {"matrix"}, {8}, true}};
  PlanNode kernel;
  kernel.kernel = "_Z4axpyPKfPf";
  kernel.grid = {132, 2, 1};
  kernel.cluster = {2, 1, 1};
  kernel.dynamic_shared_bytes = 512;
  kernel.overlap_previous = true;
  kernel.arguments = {{KBEAM_VALUE, 4, std::string("\x01\x02\x03\x04", 4), {}, -1},
                      {KBEAM_ADDRESS, 8, "", {1, 8}, -1},
                      {KBEAM_TENSOR_MAP, 128, "", {}, 0}};
  PlanNode conditional;
  conditional.kind = NodeKind::conditional;
  conditional.after = {0};
  conditional.condition = 0;
  conditional.has_otherwise = true;
  PlanNode fill;
  fill.kind = NodeKind::fill;
  fill.body = 2;
  fill.to = {1, 0};
  fill.bytes = 256;
  fill.byte_value = 255;
  PlanNode copy;
  copy.kind = NodeKind::copy;
  copy.body = 3;
  copy.from = {0, 0};
  copy.to = {2, 0};
  copy.bytes = 1024;
  PlanNode gemm;
  gemm.kind = NodeKind::gemm;
  gemm.after = {1};
  gemm.gemm.m = 64;
  gemm.gemm.alpha = 0.1;
  PlanNode vendor;
  vendor.kind = NodeKind::vendor_call;
  vendor.after = {4};
  vendor.routine = "cusolver.sgeqrf";
  vendor.pointers = {{0, 0}};
  vendor.numbers = {-3};
  plan.nodes = {kernel, conditional, fill, copy, gemm, vendor};
  plan.notes["path"] = "wide";
  return plan;
}

TEST(LaunchPlan, ComesBackFromJsonAsItWas) {
  const LaunchPlan plan = full_plan();
  const auto back = launch_plan_from_json(Json::parse(to_json(plan).dump()));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(to_json(*back).dump(), to_json(plan).dump());
  EXPECT_EQ(back->buffers[3].content, plan.buffers[3].content);
  EXPECT_EQ(back->nodes[2].byte_value, 255);
  EXPECT_EQ(back->nodes[4].gemm.alpha, 0.1);
  EXPECT_EQ(back->nodes[5].numbers, std::vector<std::int64_t>{-3});
  EXPECT_TRUE(back->figures[0].not_finite);
}

TEST(LaunchPlan, HashFollowsEveryField) {
  const std::string hash = launch_plan_hash(full_plan());
  EXPECT_EQ(launch_plan_hash(full_plan()), hash);
  const std::vector<void (*)(LaunchPlan&)> changes = {
      [](LaunchPlan& plan) { plan.image_hash = "ab"; },
      [](LaunchPlan& plan) { plan.buffers[3].content[1] = 'x'; },
      [](LaunchPlan& plan) { plan.nodes[0].arguments[0].value[3] = 'x'; },
      [](LaunchPlan& plan) { plan.nodes[0].shared_carveout_percent = 50; },
      [](LaunchPlan& plan) { plan.nodes[1].after.clear(); },
      [](LaunchPlan& plan) { plan.nodes[3].from.offset_bytes = 4; },
      [](LaunchPlan& plan) { plan.conditions[0] = 1; },
      [](LaunchPlan& plan) { plan.notes["path"] = "tall"; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    LaunchPlan changed = full_plan();
    changes[i](changed);
    EXPECT_NE(launch_plan_hash(changed), hash) << "change " << i;
  }
}

TEST(LaunchPlan, ReaderNamesTheFieldThatIsWrong) {
  struct Damage {
    void (*apply)(Json&);
    const char* sentence;
  };
  const Damage damages[] = {
      {[](Json& json) { json["nodes"][0]["grid"][1] = -1; }, "nodes[0].grid[1] is out of range"},
      {[](Json& json) {
         json["nodes"][0]["grid"] = {1, 2};
       },
       "nodes[0].grid has another length"},
      {[](Json& json) { json["nodes"][0].erase("block"); }, "nodes[0].block is missing"},
      {[](Json& json) { json["nodes"][2]["kind"] = "memset"; }, "nodes[2].kind is none"},
      {[](Json& json) { json["nodes"][4]["gemm"]["a"] = 3; }, "nodes[4].gemm.a is not an object"},
      {[](Json& json) { json["nodes"][0]["arguments"][0]["value"] = "0g"; },
       "nodes[0].arguments[0].value is not in hexadecimal"},
      {[](Json& json) { json["buffers"][1]["bytes"] = 1.5; }, "buffers[1].bytes is not a whole"},
      {[](Json& json) { json["buffers"][1]["bytes"] = 18446744073709551615U; },
       "buffers[1].bytes is out of range"},
      {[](Json& json) { json["figures"][0]["limit"] = nullptr; },
       "figures[0].limit is not a number"},
      {[](Json& json) { json["notes"] = Json::array(); }, "notes is not an object"},
      {[](Json& json) { json = 7; }, "the whole is not an object"}};
  for (const Damage& damage : damages) {
    Json json = to_json(full_plan());
    damage.apply(json);
    const auto read = launch_plan_from_json(json);
    ASSERT_FALSE(read.ok()) << damage.sentence;
    EXPECT_THAT(read.error().happened, HasSubstr(damage.sentence));
  }
}

TEST(LaunchPlan, KnowsWhatItUses) {
  LaunchPlan plan = full_plan();
  EXPECT_TRUE(plan.uses_library());
  EXPECT_TRUE(plan.uses_conditions());
  EXPECT_EQ(plan.scratch_bytes(), 1280);
  plan.nodes.resize(4);
  EXPECT_FALSE(plan.uses_library());
}

TEST(LaunchPlan, KernelNamesAreTheSameAfterEveryBuild) {
  EXPECT_EQ(
      readable_kernel_name("_ZN44_GLOBAL__N__23e514e4_12_candidate_cu_counter5scaleILi256EEEvPfif"),
      "void (anonymous namespace)::scale<256>(float*, int, float)");
  EXPECT_EQ(readable_kernel_name("_Z4axpyPKfPf3Big"), "axpy(float const*, float*, Big)");
  EXPECT_EQ(readable_kernel_name("plain"), "plain");
  EXPECT_EQ(readable_kernel_name("_ZN33_INTERNAL_5f3a1b2c_4_t_cu_9d8e7f64statEPf"), "stat(float*)");
}

TEST(LaunchPlan, DeviceDescriptionComesBack) {
  kbeam_device device{};
  device.multiprocessors = 132;
  device.architecture = 90;
  device.resident_clusters[1][15] = 14;
  const auto back = device_from_json(to_json(device));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(back->multiprocessors, 132);
  EXPECT_EQ(back->resident_clusters[1][15], 14);
  Json json = to_json(device);
  json["resident_clusters_one_block"].erase(0);
  EXPECT_FALSE(device_from_json(json).ok());
}

}  // namespace
}  // namespace kbeam
