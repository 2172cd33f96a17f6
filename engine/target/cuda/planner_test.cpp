// Plans of real .cu modules: every feature of the contract, and every mistake that it can hold.
#include "target/cuda/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "target/cuda/planner_fixture.h"
#include "target/cuda/test_modules/wrong_plans.h"

namespace kbeam {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Planned plan_one(const PlanRequest& request,
                 const PlannerOptions& options = test_planner_options()) {
  auto answers = make_launch_plans(options, {request});
  if (!answers.ok()) return {.sentence = answers.error().text()};
  return std::move(answers->front());
}

class EveryFeature : public ::testing::Test {
 protected:
  EveryFeature() {
    PlanRequest request = test_plan_request(test_module("every_feature"));
    request.may_use_libraries = true;
    planned_ = plan_one(request);
  }
  const PlanNode& node(const std::string& kernel) const {
    static const PlanNode none;
    for (const PlanNode& one : planned_.plan->nodes)
      if (one.kernel_name.find(kernel) != std::string::npos) return one;
    ADD_FAILURE() << "no kernel " << kernel;
    return none;
  }
  Planned planned_;
};

TEST_F(EveryFeature, IsRecorded) {
  ASSERT_TRUE(planned_.plan.has_value()) << planned_.sentence;
  const LaunchPlan& plan = *planned_.plan;
  EXPECT_TRUE(plan.uses_library());
  EXPECT_TRUE(plan.uses_conditions());
  EXPECT_EQ(plan.image_hash.size(), 64U);
  EXPECT_FALSE(planned_.image.empty());
  EXPECT_EQ(plan.nodes[0].kind, NodeKind::copy);
  EXPECT_EQ(node("scale<128>").grid[0], 2U);
  EXPECT_THAT(node("scale<256>").block, ElementsAre(128, 2, 1));
  EXPECT_EQ(node("scale<256>").arguments[0].address.offset_bytes, 256);
  EXPECT_THAT(node("free_cluster").cluster, ElementsAre(16, 1, 1));
  EXPECT_EQ(node("large_shared").dynamic_shared_bytes, 160U * 1024);
  EXPECT_EQ(node("large_shared").shared_carveout_percent, 100);
  EXPECT_TRUE(node("whole_grid").cooperative);
  EXPECT_TRUE(node("late").overlap_previous);
  EXPECT_EQ(node("tile").arguments[0].kind, KBEAM_TENSOR_MAP);
  EXPECT_EQ(node("decide").arguments[0].kind, KBEAM_CONDITION);
  EXPECT_EQ(node("take_table").arguments[2].value, std::string(8, '\0'));
  const std::string& padded = node("use_struct").arguments[1].value;
  ASSERT_EQ(padded.size(), 40U);
  EXPECT_EQ(padded.substr(0, 4), std::string("\x01\0\0\0", 4));
  EXPECT_EQ(padded.substr(32), std::string("\x04\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(node("use_struct").arguments[3].value, std::string("\x03\x00", 2));
  EXPECT_EQ(plan.conditions, std::vector<std::uint32_t>{1});
  // 8 blocks of 256 threads on each of 132 multiprocessors.
  EXPECT_EQ(plan.notes.at("resident"), "1056");
  EXPECT_EQ(plan.scratch_bytes(), 256 + 2 * 1024);
}

TEST_F(EveryFeature, BranchesAndBodiesAreKept) {
  ASSERT_TRUE(planned_.plan.has_value()) << planned_.sentence;
  const std::vector<PlanNode>& nodes = planned_.plan->nodes;
  const auto index_of = [&](const std::function<bool(const PlanNode&)>& wanted) {
    return static_cast<int>(std::find_if(nodes.begin(), nodes.end(), wanted) - nodes.begin());
  };
  const int fork =
      index_of([](const PlanNode& n) { return n.kernel_name.find("tile") != std::string::npos; });
  EXPECT_THAT(nodes[static_cast<std::size_t>(fork + 1)].after, ElementsAre(fork));
  EXPECT_THAT(nodes[static_cast<std::size_t>(fork + 2)].after, ElementsAre(fork));
  EXPECT_THAT(nodes[static_cast<std::size_t>(fork + 3)].after, ElementsAre(fork + 2));
  EXPECT_THAT(nodes[static_cast<std::size_t>(fork + 4)].after, ElementsAre(fork + 1, fork + 3));
  const int conditional =
      index_of([](const PlanNode& n) { return n.kind == NodeKind::conditional; });
  EXPECT_TRUE(nodes[static_cast<std::size_t>(conditional)].has_otherwise);
  EXPECT_EQ(nodes[static_cast<std::size_t>(conditional + 1)].body, 2 * conditional);
  EXPECT_EQ(nodes[static_cast<std::size_t>(conditional + 2)].body, 2 * conditional + 1);
  EXPECT_THAT(nodes[static_cast<std::size_t>(conditional + 2)].after, ElementsAre());
  EXPECT_THAT(nodes[static_cast<std::size_t>(conditional + 3)].after, ElementsAre(conditional + 2));
  EXPECT_THAT(nodes.back().after, ElementsAre(conditional));
}

TEST_F(EveryFeature, ComesBackFromJson) {
  ASSERT_TRUE(planned_.plan.has_value()) << planned_.sentence;
  const auto back = launch_plan_from_json(Json::parse(to_json(*planned_.plan).dump()));
  ASSERT_TRUE(back.ok()) << back.error().text();
  EXPECT_EQ(launch_plan_hash(*back), launch_plan_hash(*planned_.plan));
}

TEST_F(EveryFeature, IsTheSameInAnyCompany) {
  PlanRequest small = test_plan_request(test_module("every_feature"));
  PlanRequest large = test_plan_request(test_module("every_feature"), 8, 8192);
  PlanRequest other = test_plan_request(test_module("every_feature"), 16, 128);
  for (PlanRequest* request : {&small, &large, &other}) request->may_use_libraries = true;
  const auto answers = make_launch_plans(test_planner_options(), {other, large, small});
  ASSERT_TRUE(answers.ok()) << answers.error().text();
  EXPECT_EQ((*answers)[1].verdict, Verdict::not_supported);
  EXPECT_EQ((*answers)[1].sentence, "only up to 4096 columns");
  ASSERT_TRUE((*answers)[2].plan.has_value()) << (*answers)[2].sentence;
  EXPECT_EQ(launch_plan_hash(*(*answers)[2].plan), launch_plan_hash(*planned_.plan));
}

TEST(ProblemPlans, GeneratorAndCheckerArePlansToo) {
  PlanRequest generate = test_plan_request(test_module("every_feature"));
  generate.entry = PlanEntry::generate;
  generate.texts = {{"family", "dense"}};
  const Planned generator = plan_one(generate);
  ASSERT_TRUE(generator.plan.has_value()) << generator.sentence;
  EXPECT_EQ(generator.plan->notes.at("family"), "dense");
  EXPECT_EQ(generator.plan->buffers.back().kind, BufferKind::control);

  PlanRequest check = test_plan_request(test_module("every_feature"));
  check.entry = PlanEntry::check;
  check.texts = {{"depth", "quick"}, {"grade", "strict"}};
  const Planned quick = plan_one(check);
  ASSERT_TRUE(quick.plan.has_value()) << quick.sentence;
  ASSERT_EQ(quick.plan->figures.size(), 1U);
  EXPECT_EQ(quick.plan->figures[0].limit, 2.0);
  EXPECT_THAT(quick.plan->figures[0].radices, ElementsAre(4, 64));
  check.texts["depth"] = "full";
  const Planned full = plan_one(check);
  ASSERT_TRUE(full.plan.has_value()) << full.sentence;
  EXPECT_EQ(full.plan->figures[0].limit, 1.0);
}

TEST(Planner, RefusesDeviceVariables) {
  const Planned planned = plan_one(test_plan_request(test_module("device_variables")));
  EXPECT_EQ(planned.verdict, Verdict::refused_object);
  EXPECT_THAT(planned.sentence, HasSubstr("keeps device variables from one call to the next: "));
  EXPECT_THAT(planned.sentence, HasSubstr("calls; use __constant__"));
}

TEST(Planner, SaysWhichMacroIsMissing) {
  PlanRequest request = test_plan_request(test_module("wrong_plans"));
  request.entry = PlanEntry::check;
  EXPECT_THAT(plan_one(request).sentence, HasSubstr("the file has no KBEAM_CHECK"));
}

TEST(Planner, TheCompilersReportWins) {
  PlanRequest request = test_plan_request(test_module("every_feature"));
  request.may_use_libraries = true;
  const Planned before = plan_one(request);
  ASSERT_TRUE(before.plan.has_value()) << before.sentence;
  for (const PlanNode& node : before.plan->nodes)
    if (node.kernel_name.find("whole_grid") != std::string::npos)
      request.kernels[node.kernel] = {.registers = 128};
  const Planned after = plan_one(request);
  ASSERT_TRUE(after.plan.has_value()) << after.sentence;
  EXPECT_EQ(after.plan->notes.at("resident"), "264");
}

struct Expectation {
  PlanMistake mistake;
  const char* sentence;  // null: the plan is good
};
void PrintTo(const Expectation& expectation, std::ostream* stream) {
  *stream << "mistake " << static_cast<int>(expectation.mistake);
}

class WrongPlan : public ::testing::TestWithParam<Expectation> {};

TEST_P(WrongPlan, IsRefusedWithItsReason) {
  PlanRequest request = test_plan_request(test_module("wrong_plans"));
  request.axes["mistake"] = static_cast<std::int64_t>(GetParam().mistake);
  request.may_use_libraries = GetParam().mistake != PlanMistake::calls_without_leave;
  const Planned planned = plan_one(request);
  if (GetParam().sentence == nullptr) {
    EXPECT_EQ(planned.verdict, Verdict::accepted) << planned.sentence;
    return;
  }
  EXPECT_EQ(planned.verdict, Verdict::bad_plan);
  EXPECT_THAT(planned.sentence, HasSubstr(GetParam().sentence));
}

using M = PlanMistake;
INSTANTIATE_TEST_SUITE_P(
    Mistakes, WrongPlan,
    ::testing::Values(
        Expectation{M::none, nullptr},
        Expectation{M::writes_an_input, "node 1 (copy) writes to x, which is read-only (input)"},
        Expectation{M::fills_an_input, "node 1 (fill) writes to x, which is read-only (input)"},
        Expectation{M::copies_into_a_table, "writes to table 0, which is read-only (table)"},
        Expectation{M::copies_onto_itself, "copies between places that overlap"},
        Expectation{M::reaches_beyond_a_buffer,
                    "target of 1024 bytes from byte 4 of y, which has 1024 bytes"},
        Expectation{M::argument_beyond_a_buffer,
                    "argument 0 at byte 1028 of y, which has 1024 bytes"},
        Expectation{M::no_blocks, "a grid of 0 x 1 x 1 blocks"},
        Expectation{M::too_many_rows_of_blocks, "a grid of 1 x 65536 x 1 blocks"},
        Expectation{M::too_many_threads, "blocks of 64 x 32 x 1 threads"},
        Expectation{M::above_launch_bounds, "256 threads a block; the kernel is bounded to 128"},
        Expectation{M::too_much_shared_memory,
                    "needs 237568 bytes of shared memory a block (204800 dynamic, 32768 static); "
                    "the device has 232448"},
        Expectation{M::cluster_does_not_divide, "which clusters of 4 x 1 x 1 do not divide"},
        Expectation{M::cluster_too_large, "clusters of 32 x 1 x 1 blocks; they have 1 to 16"},
        Expectation{M::another_cluster_than_compiled, "but was compiled for 2 x 1 x 1"},
        Expectation{M::too_many_cooperative_blocks, "only 264 are resident at once"},
        Expectation{M::overlaps_two_nodes, "must wait for exactly one node, a kernel"},
        Expectation{M::overlaps_a_copy, "must wait for exactly one node, a kernel"},
        Expectation{M::waits_for_a_later_node, "waits for node 5, which is not recorded before it"},
        Expectation{M::waits_across_bodies, "waits for node 0, which is in another body"},
        Expectation{M::unused_condition, "condition 0 is asked by 0 conditional nodes"},
        Expectation{M::condition_asked_twice, "condition 0 is asked by 2 conditional nodes"},
        Expectation{M::box_too_large, "a box of 257 elements along dimension 1"},
        Expectation{M::box_not_whole, "a box row of 12 bytes"},
        Expectation{M::swizzle_too_narrow, "a box row of 64 bytes; with a swizzle of 32 bytes"},
        Expectation{M::odd_stride, "every 252 bytes; strides are multiples of 16"},
        Expectation{M::tensor_map_beyond_a_buffer, "reaches beyond the 1024 bytes of y"},
        Expectation{M::calls_without_leave, "calls a vendor's routine; only baselines may"},
        Expectation{M::multiplies_into_an_input, "writes to x, which is read-only"},
        Expectation{M::multiplies_mixed_types, "combines types"},
        Expectation{M::multiplies_beyond_a_buffer, "matrix C of 1152 bytes from byte 0 of y"},
        Expectation{M::no_such_carveout, "prefers 120 % of shared memory"}));

INSTANTIATE_TEST_SUITE_P(
    Counts, WrongPlan,
    ::testing::Values(
        Expectation{M::scratch_beyond_64_bits, "asks for 2^63 or more bytes of scratch after 0"},
        Expectation{M::scratch_wraps_to_few_bytes, "asks for 2^63 or more bytes of scratch"},
        Expectation{M::zeroed_scratch_beyond_64_bits, "asks for 2^63 or more bytes of scratch"},
        Expectation{M::scratch_of_negative_count, "asks for -12 more bytes of scratch"},
        Expectation{M::scratch_of_very_negative_count, "asks for -9223372036854775808 more"},
        Expectation{M::fill_wraps_to_few_bytes, "target of 9223372036854775807 bytes from byte 0"},
        Expectation{M::copy_wraps_to_few_bytes, "target of 9223372036854775807 bytes from byte 0"},
        Expectation{M::fill_of_negative_count, "moves -8 bytes"},
        Expectation{M::pointer_wraps_into_its_buffer,
                    "argument 0 at byte 9223372036854775807 of y, which has 1024 bytes"},
        Expectation{M::pointer_comes_back_from_beyond,
                    "argument 0 at byte 9223372036854775807 of y, which has 1024 bytes"},
        Expectation{M::stride_wraps_to_few_bytes, "every 18446744073709551615 bytes"},
        Expectation{M::negative_grid, "node 1 has a grid of 4 x -1 x 1 blocks; x is 1 to"},
        Expectation{M::negative_block, "node 1 has blocks of -32 x 1 x 1 threads; they have"},
        Expectation{M::negative_cluster, "node 1 has clusters of -2 x 1 x 1 blocks"},
        Expectation{M::grid_wraps_to_few_blocks, "a grid of 4294967297 x 1 x 1 blocks"},
        Expectation{M::block_wraps_to_few_threads, "blocks of 4294967328 x 1 x 1 threads"},
        Expectation{M::cluster_wraps_to_few_blocks, "clusters of 2 x 4294967297 x 1 blocks"},
        Expectation{M::grid_of_all_64_bits, "a grid of 9223372036854775807 x 1 x 1 blocks"},
        Expectation{M::negative_shared_memory, "node 1 asks for -16 bytes of shared memory"},
        Expectation{M::shared_memory_wraps_to_none,
                    "node 1 asks for 4294967296 bytes of shared memory"}));

}  // namespace
}  // namespace kbeam
