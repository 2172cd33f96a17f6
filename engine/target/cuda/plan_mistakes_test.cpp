// Plans as a hostile planner process could write them: no toolkit is needed to make them.
#include "target/cuda/plan_mistakes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "target/cuda/planner.h"
#include "target/cuda/planner_fixture.h"

namespace kbeam {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlanMistakesTest : public ::testing::Test {
 protected:
  PlanMistakesTest() {
    const auto description = read_device_description(test_planner_options().device_description);
    if (description.ok()) device_ = description->device;
    image_.architecture = 90;
    image_.kernels["_Z4axpyPKfPfi"] = {.resources = {.registers = 32},
                                       .parameter_sizes = {8, 8, 4}};
    plan_.buffers = given_buffers(PlanEntry::candidate, tensors_);
    PlanNode kernel;
    kernel.kernel = "_Z4axpyPKfPfi";
    kernel.arguments = {{KBEAM_ADDRESS, 8, "", {0, 0}, -1},
                        {KBEAM_ADDRESS, 8, "", {1, 0}, -1},
                        {KBEAM_VALUE, 4, std::string(4, '\0'), {}, -1}};
    PlanNode second = kernel;
    second.after = {0};
    plan_.nodes = {kernel, second};
  }
  std::vector<std::string> mistakes(PlanEntry entry = PlanEntry::candidate) const {
    return find_plan_mistakes(plan_, {.entry = entry,
                                      .tensors = tensors_,
                                      .device = device_,
                                      .image = image_,
                                      .limits = {.most_nodes = 10}});
  }
  void expect(const char* sentence, PlanEntry entry = PlanEntry::candidate) const {
    EXPECT_THAT(testing::PrintToString(mistakes(entry)), HasSubstr(sentence));
  }

  std::vector<TensorShape> tensors_ = test_plan_request("").tensors;
  kbeam_device device_{};
  DeviceImage image_;
  LaunchPlan plan_;
};

TEST_F(PlanMistakesTest, AGoodPlanHasNone) {
  EXPECT_THAT(mistakes(), IsEmpty());
}

TEST_F(PlanMistakesTest, BuffersAreThoseOfTheCase) {
  plan_.buffers[1].bytes += 4;
  expect("not the tensors of the case");
  plan_.buffers.resize(1);
  expect("not the tensors of the case");
  plan_.buffers = given_buffers(PlanEntry::candidate, tensors_);
  plan_.buffers.push_back({BufferKind::output, "z", 8, {}});
  expect("z is a second output buffer");
}

TEST_F(PlanMistakesTest, OwnBuffersKeepTheirLimits) {
  plan_.buffers.push_back({BufferKind::scratch, "scratch 0", 20LL << 30, {}});
  plan_.buffers.push_back({BufferKind::zeroed_scratch, "scratch 1", 20LL << 30, {}});
  plan_.buffers.push_back({BufferKind::table, "table 0", 8, "abc"});
  plan_.buffers.push_back({BufferKind::scratch, "scratch 2", -1, {}});
  expect("bytes of scratch; the limit is");
  expect("table 0 says 8 bytes and holds 3");
  expect("scratch 2 has -1 bytes");
}

TEST_F(PlanMistakesTest, NamesOfOwnBuffersCanBeRead) {
  for (const std::string& name :
       {std::string("\x1b[2J"), std::string("\xc2\x9b"), std::string("a\nb"), std::string(101, 'x'),
        std::string("\0", 1)}) {
    plan_.buffers = given_buffers(PlanEntry::candidate, tensors_);
    plan_.buffers.push_back({BufferKind::scratch, name, 256, {}});
    expect("no name that can be read");
  }
}

TEST_F(PlanMistakesTest, PlacesAreInsideTheirBuffers) {
  for (const BufferPlace& place : {BufferPlace{7, 0}, BufferPlace{-1, 0}, BufferPlace{1, -4},
                                   BufferPlace{1, 1025}, BufferPlace{1, INT64_MAX}}) {
    plan_.nodes[0].arguments[1].address = place;
    expect("node 0 (_Z4axpyPKfPfi) has argument 1");
  }
  plan_.nodes[0].arguments[1].address = {1, 1024};  // the end is a place, too
  EXPECT_THAT(mistakes(), IsEmpty());
}

TEST_F(PlanMistakesTest, ArgumentsAreTheKernelsParameters) {
  plan_.nodes[0].arguments[2].size = 8;
  expect("passes 8 bytes as argument 2; the kernel's parameter has 4");
  plan_.nodes[0].arguments[2].size = 4;
  plan_.nodes[0].arguments[2].value = "x";
  expect("has 1 bytes for the 4 of argument 2");
  plan_.nodes[0].arguments[0] = {KBEAM_TENSOR_MAP, 8, "", {}, 0};
  expect("a tensor map that the plan does not have");
  plan_.nodes[0].arguments[0] = {KBEAM_CONDITION, 8, "", {}, 3};
  expect("a condition that the plan does not have");
  plan_.nodes[0].arguments.pop_back();
  expect("passes 2 arguments; the kernel has 3 parameters");
}

TEST_F(PlanMistakesTest, OrderAndBodiesHold) {
  plan_.nodes[1].after = {1};
  expect("waits for node 1, which is not recorded before it");
  plan_.nodes[1].after = {0, 0};
  expect("waits twice for node 0");
  plan_.nodes[1].after = {0};
  plan_.nodes[1].body = 0;
  expect("belongs to a body that no conditional node before it has");
  plan_.nodes[1].body = -7;
  expect("belongs to no body");
}

TEST_F(PlanMistakesTest, SizesAreBounded) {
  plan_.nodes.resize(11, plan_.nodes[0]);
  expect("the plan has 11 nodes; the limit is 10");
  plan_.nodes.clear();
  expect("the plan does nothing");
  plan_.notes["long"] = std::string(5000, 'x');
  expect("characters in one note");
}

TEST_F(PlanMistakesTest, OnlyChecksHaveFigures) {
  plan_.figures = {{"residual", "eps", 1, {"matrix"}, {8}, false}};
  expect("only a check plan has figures");
  plan_.buffers = given_buffers(PlanEntry::check, tensors_);
  plan_.nodes[0].arguments[1].address = {1, 0};
  expect("has no buffer for its figures", PlanEntry::check);
  plan_.buffers.push_back({BufferKind::figures, "figures 0", 8, {}});
  EXPECT_THAT(mistakes(PlanEntry::check), IsEmpty());
  plan_.figures[0].radices[0] = 0x200000000LL;
  expect("counts more than 2^32 places", PlanEntry::check);
  plan_.figures.clear();
  expect("reports at least one figure", PlanEntry::check);
}

TEST_F(PlanMistakesTest, AGeneratorWritesInputsAndSeesNoOutputs) {
  const auto buffers = given_buffers(PlanEntry::generate, tensors_);
  ASSERT_EQ(buffers.size(), 2U);
  EXPECT_EQ(buffers[0].kind, BufferKind::output);
  EXPECT_EQ(buffers[0].name, "x");
  EXPECT_EQ(buffers[1].kind, BufferKind::control);
  EXPECT_EQ(given_buffers(PlanEntry::check, tensors_)[1].kind, BufferKind::input);
}

TEST_F(PlanMistakesTest, ADeviceWithoutClustersRefusesThem) {
  plan_.nodes[0].cluster = {2, 1, 1};
  plan_.nodes[0].grid = {4, 1, 1};
  EXPECT_THAT(mistakes(), IsEmpty());
  device_.architecture = 80;
  expect("uses clusters, which the device does not have");
}

TEST_F(PlanMistakesTest, TooManyRegistersCannotRun) {
  image_.kernels["_Z4axpyPKfPfi"].resources.registers = 128;
  plan_.nodes[0].block = {1024, 1, 1};
  expect("128 registers for each of 1024 threads");
}

}  // namespace
}  // namespace kbeam
