#include "target/cuda/graph_replay.h"

#include <gmock/gmock.h>

#include "target/cuda/fake_driver_fixture.h"
#include "target/cuda/kernels/self_test_layout.h"
#include "target/cuda/plan_indices.h"
#include "target/cuda/self_test_plans.h"

namespace kbeam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The self test's tour is a plan with every kind of node but the libraries'.
class GraphReplayTest : public testing::Test {
 protected:
  GraphReplayTest() {
    const std::map<std::string, std::vector<std::size_t>> kernels{
        {"st_affine", {8, 8, sizeof(self_test::Affine)}},
        {"st_rotate", {8}},
        {"st_pair", {8}},
        {"st_early", {8, 4, 8}},
        {"st_late", {8, 8}},
        {"st_everyone", {8, 8}},
        {"st_big_shared", {8}},
        {"st_tile", {128, 8, 8, 4, 4}},
        {"st_count", {8}},
        {"st_decide", {8, 4}},
        {"st_store", {8, 4}},
        {"st_sum_table", {8, 4, 8}},
        {"st_count_words", {8, 8, 4, 8}},
        {"st_publish", {8, 8}}};
    for (const auto& [name, sizes] : kernels) fake_.kernels[name].parameters = sizes;
    for (const PlanBuffer& buffer : plan_.buffers)
      addresses_.push_back(reinterpret_cast<CUdeviceptr>(
          memory_.emplace_back(static_cast<std::size_t>(buffer.bytes)).data()));
  }

  GraphReplay replay(const LaunchPlan& plan) {
    return GraphReplay({cuda_, nullptr, nullptr, kernels_, nullptr}, plan, addresses_, &image_);
  }
  FakeGraph& built() { return fake_.graphs.front(); }
  FakeNode& kernel(const std::string& name, int which = 0) {
    for (FakeGraph& graph : fake_.graphs)
      for (FakeNode& node : graph.nodes)
        if (node.kernel == name && which-- == 0) return node;
    ADD_FAILURE() << "no node launches " << name;
    return fake_.graphs.front().nodes.front();
  }
  int node_index(const std::string& kernel_name) const {
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i)
      if (plan_.nodes[i].kernel == kernel_name) return static_cast<int>(i);
    return -1;
  }
  std::uint64_t word(const FakeNode& node, std::size_t argument) {
    std::uint64_t value = 0;
    std::memcpy(&value, node.arguments.at(argument).data(), 8);
    return value;
  }

  FakeDriver fake_;
  Driver cuda_ = fake_.driver();
  std::string bytes_ = "image";
  SeatKernels kernels_{cuda_, nullptr, "trusted"};
  LoadedImage image_{cuda_, bytes_};
  LaunchPlan plan_ = self_test::subject_plan("tour");
  std::vector<std::vector<char>> memory_;  // what the graph's fills and copies work on
  std::vector<CUdeviceptr> addresses_;
};

TEST_F(GraphReplayTest, AddsNodesInOrderEachAfterTheOneBefore) {
  auto graph = replay(plan_);
  graph.build();
  // Two buffers start as zeros: cleared before the first node of the plan, which waits for both.
  auto& nodes = built().nodes;
  EXPECT_EQ(nodes[0].kernel, "kbeam_fill");
  EXPECT_EQ(nodes[1].kernel, "kbeam_fill");
  EXPECT_THAT(nodes[0].after, IsEmpty());
  EXPECT_THAT(nodes[2].after, ElementsAre(&nodes[0], &nodes[1]));
  for (std::size_t i = 3; i < nodes.size(); ++i)
    if (nodes[i].kernel != "st_late") {
      EXPECT_THAT(nodes[i].after, ElementsAre(&nodes[i - 1])) << i << " " << nodes[i].kernel;
    }
}

TEST_F(GraphReplayTest, OverlapIsAProgrammaticEdgeAndNoOther) {
  auto graph = replay(plan_);
  graph.build();
  EXPECT_THAT(kernel("st_late").after, IsEmpty());
  EXPECT_THAT(kernel("st_late").after_programmatic, ElementsAre(&kernel("st_early")));
}

TEST_F(GraphReplayTest, OverlapAfterACopyNodeIsAnOrdinaryEdge) {
  LaunchPlan plan = plan_;
  for (std::size_t i = 1; i < plan.nodes.size(); ++i)
    if (plan.nodes[i - 1].kind == NodeKind::copy && plan.nodes[i - 1].bytes > (4 << 20))
      plan.nodes[i].overlap_previous = true;
  auto graph = replay(plan);
  graph.build();
  EXPECT_THAT(kernel("st_count_words").after, SizeIs(1));
  EXPECT_THAT(kernel("st_count_words").after_programmatic, IsEmpty());
}

TEST_F(GraphReplayTest, SetsClusterCooperativeAndSharedMemory) {
  auto graph = replay(plan_);
  graph.build();
  EXPECT_THAT(kernel("st_rotate", 0).cluster, ElementsAre(4, 1, 1));
  EXPECT_THAT(kernel("st_rotate", 1).cluster, ElementsAre(16, 1, 1));
  EXPECT_THAT(kernel("st_pair").cluster, ElementsAre(0, 0, 0));
  EXPECT_TRUE(kernel("st_everyone").cooperative);
  EXPECT_FALSE(kernel("st_pair").cooperative);
  EXPECT_EQ(kernel("st_big_shared").launch.sharedMemBytes, self_test::kSharedWords * 4u);
}

TEST_F(GraphReplayTest, OptsInBeforeTheFirstNode) {
  auto graph = replay(plan_);
  graph.build();
  const auto first_node = std::find(fake_.log.begin(), fake_.log.end(), "add kernel");
  for (const char* name : {"opt in st_big_shared", "opt in st_rotate"})
    EXPECT_LT(std::find(fake_.log.begin(), fake_.log.end(), name), first_node) << name;
  const auto* rotate = reinterpret_cast<FakeFunction*>(kernel("st_rotate").launch.func);
  EXPECT_TRUE(rotate->non_portable);
  EXPECT_TRUE(rotate->loaded);
}

TEST_F(GraphReplayTest, PatchesAddressesMapsAndConditions) {
  auto graph = replay(plan_);
  graph.build();
  const FakeNode& affine = kernel("st_affine");
  EXPECT_EQ(word(affine, 0), addresses_[0]);
  EXPECT_EQ(word(affine, 1), addresses_[1]);
  const FakeNode& count = kernel("st_count");
  EXPECT_EQ(word(count, 0), addresses_[2] + 4 * self_test::kCounters);
  EXPECT_EQ(word(kernel("st_tile"), 0), addresses_[0]);  // the fake map begins with its base
  EXPECT_TRUE(fake_.conditions.contains(word(kernel("st_decide", 0), 0)));
  EXPECT_NE(word(kernel("st_decide", 0), 0), word(kernel("st_decide", 1), 0));
}

TEST_F(GraphReplayTest, FillsTheBodiesOfConditions) {
  auto graph = replay(plan_);
  graph.build();
  int found = 0;
  for (FakeNode& node : built().nodes)
    if (node.kind == "conditional") {
      ++found;
      ASSERT_THAT(node.bodies, SizeIs(2));
      EXPECT_THAT(node.bodies[0]->nodes, SizeIs(1));
      EXPECT_EQ(node.bodies[1]->nodes.front().kernel, "st_store");
      EXPECT_THAT(node.bodies[1]->nodes.front().after, IsEmpty());
    }
  EXPECT_EQ(found, 2);
}

TEST_F(GraphReplayTest, LargeCopiesAreCopyNodesSmallOnesKernels) {
  auto graph = replay(plan_);
  graph.build();
  int copies = 0;
  for (const FakeNode& node : built().nodes) copies += node.kind == "copy";
  EXPECT_EQ(copies, 1);
  EXPECT_EQ(word(kernel("kbeam_copy"), 0), addresses_[1]);
}

TEST_F(GraphReplayTest, CopiesOfMemoryThatIsUnmappedBetweenReplaysAreKernels) {
  GraphReplay graph({cuda_, nullptr, nullptr, kernels_, nullptr, true}, plan_, addresses_, &image_);
  graph.build();
  for (const FakeNode& node : built().nodes) EXPECT_NE(node.kind, "copy");
}

TEST_F(GraphReplayTest, ReplayedTwiceAfterReloadingTheImage) {
  auto graph = replay(plan_);
  graph.build();
  const int loads = fake_.module_loads;
  graph.drop();
  image_.reload();
  graph.build();
  EXPECT_EQ(fake_.module_loads, loads + 1);
  // The executable goes before its module: a graph does not keep it alive.
  const auto destroyed = std::find(fake_.log.begin(), fake_.log.end(), "destroy");
  EXPECT_LT(destroyed, std::find(fake_.log.begin(), fake_.log.end(), "unload"));
}

TEST_F(GraphReplayTest, TimesNodesOneAfterTheOther) {
  auto graph = replay(plan_);
  graph.build();
  const auto rows = graph.time_nodes(3);
  ASSERT_THAT(rows, SizeIs(3));
  EXPECT_EQ(rows[0].size(), GraphReplay::timed_nodes(plan_).size() + 1);
  EXPECT_NEAR(rows[0][0], 2000, 1);
}

TEST_F(GraphReplayTest, RefusesLibraryNodesWithoutALibrary) {
  const LaunchPlan plan = self_test::subject_plan("gemm");
  GraphReplay graph({cuda_, nullptr, nullptr, kernels_, nullptr}, plan, {1 << 20, 2 << 20, 3 << 20},
                    nullptr);
  EXPECT_THROW(graph.build(), DriverFailure);
}

// A library whose vendor routines can or cannot be captured.
class LibraryForTests final : public LibraryNodes {
 public:
  LibraryForTests(FakeDriver& fake, bool captures) : fake_(fake), captures_(captures) {}
  void begin_case(Allocate) override {}
  CUgraph graph_of(const LaunchPlan&, int, const std::vector<CUdeviceptr>&) override {
    return captures_ ? reinterpret_cast<CUgraph>(&child_) : nullptr;
  }
  void run(const LaunchPlan&, int node, const std::vector<CUdeviceptr>&) override {
    fake_.log.push_back("routine of node " + std::to_string(node));
  }
  const FakeGraph* child() const { return &child_; }

 private:
  FakeDriver& fake_;
  bool captures_;
  FakeGraph child_;
};

class LibraryReplayTest : public GraphReplayTest {
 protected:
  LibraryReplayTest() {
    plan_ = self_test::subject_plan("cusolver.sgeqrf");  // fill, copy, routine
    addresses_.clear();
    for (const PlanBuffer& buffer : plan_.buffers)
      addresses_.push_back(reinterpret_cast<CUdeviceptr>(
          memory_.emplace_back(static_cast<std::size_t>(buffer.bytes)).data()));
    PlanNode last = plan_.nodes[0];
    last.after = {2};
    plan_.nodes.push_back(last);
  }
};

TEST_F(LibraryReplayTest, ACapturedRoutineIsAChildGraph) {
  LibraryForTests library(fake_, true);
  GraphReplay graph({cuda_, nullptr, nullptr, kernels_, &library}, plan_, addresses_, nullptr);
  graph.build();
  EXPECT_FALSE(graph.has_direct_calls());
  ASSERT_THAT(built().nodes, SizeIs(4));
  EXPECT_EQ(built().nodes[2].child, library.child());
  EXPECT_THAT(built().nodes[3].after, ElementsAre(&built().nodes[2]));
}

TEST_F(LibraryReplayTest, OneThatCannotBeCapturedRunsBetweenTwoGraphs) {
  LibraryForTests library(fake_, false);
  GraphReplay graph({cuda_, nullptr, nullptr, kernels_, &library}, plan_, addresses_, nullptr);
  graph.build();
  EXPECT_TRUE(graph.has_direct_calls());
  fake_.log.clear();
  graph.launch();
  EXPECT_THAT(fake_.log, ElementsAre("launch", "routine of node 2", "launch"));
  EXPECT_THAT(fake_.graphs[0].nodes, SizeIs(2));
  EXPECT_THAT(fake_.graphs[1].nodes, SizeIs(1));
  EXPECT_THROW(graph.time_nodes(1), DriverFailure);
}

TEST_F(GraphReplayTest, FindsWhatTheDeviceRefuses) {
  EXPECT_THAT(image_.find_mistakes(plan_, 0), IsEmpty());
  LaunchPlan plan = plan_;
  plan.nodes[static_cast<std::size_t>(node_index("st_late"))].arguments[1].size = 4;
  EXPECT_THAT(image_.find_mistakes(plan, 0),
              ElementsAre(HasSubstr("parameter 1 has 8 bytes in the image and 4 in the plan")));
  plan = plan_;
  plan.nodes[static_cast<std::size_t>(node_index("st_late"))].arguments.pop_back();
  EXPECT_THAT(image_.find_mistakes(plan, 0), ElementsAre(HasSubstr("takes 2 parameters")));
  plan = plan_;
  plan.nodes[static_cast<std::size_t>(node_index("st_everyone"))].grid = {500, 1, 1};
  EXPECT_THAT(image_.find_mistakes(plan, 0), ElementsAre(HasSubstr("264 are resident at once")));
  plan = plan_;
  plan.nodes[static_cast<std::size_t>(node_index("st_pair"))].kernel = "st_missing";
  EXPECT_THAT(image_.find_mistakes(plan, 0), ElementsAre(HasSubstr("no such kernel")));
  plan = plan_;
  plan.nodes[static_cast<std::size_t>(node_index("st_pair"))].block = {2048, 1, 1};
  EXPECT_THAT(image_.find_mistakes(plan, 0), ElementsAre(HasSubstr("its registers allow 1024")));
}

TEST_F(GraphReplayTest, FindsIndicesThatPointNowhere) {
  EXPECT_EQ(find_index_mistake(plan_), "");
  const auto with = [&](const auto& change) {
    LaunchPlan plan = plan_;
    change(plan);
    return find_index_mistake(plan);
  };
  EXPECT_THAT(with([](LaunchPlan& plan) { plan.nodes[3].after = {3}; }), HasSubstr("node 3 waits"));
  EXPECT_THAT(with([](LaunchPlan& plan) { plan.nodes[2].arguments[0].address.buffer = 99; }),
              HasSubstr("an address outside its buffer"));
  EXPECT_THAT(with([](LaunchPlan& plan) { plan.nodes[0].bytes += 1; }), HasSubstr("fills outside"));
  EXPECT_THAT(with([](LaunchPlan& plan) { plan.nodes[1].from.offset_bytes = -4; }),
              HasSubstr("copies outside"));
  EXPECT_THAT(with([](LaunchPlan& plan) { plan.nodes[2] = {.body = 0}; }),
              HasSubstr("belongs to a body"));
  EXPECT_THAT(with([](LaunchPlan& plan) {
                std::erase_if(plan.nodes, [](const PlanNode& node) {
                  return node.kind == NodeKind::conditional || node.body >= 0;
                });
                for (std::size_t i = 0; i < plan.nodes.size(); ++i)
                  plan.nodes[i].after =
                      i == 0 ? std::vector<int>{} : std::vector<int>{static_cast<int>(i) - 1};
              }),
              HasSubstr("a condition that no conditional node uses"));
}

}  // namespace
}  // namespace kbeam
