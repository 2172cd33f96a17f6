// What the GPU library enqueues, without a GPU: its rows cover every shape with kernels of our own,
// and the branches of a plan wait for exactly what they have to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <random>

#include "cuda/qr_plan.h"

namespace kernelbeam::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// An H200, and one block of any kernel on each of its multiprocessors.
PlanDevice h200() {
  PlanDevice device;
  device.description = {
      .multiprocessors = 132,
      .architecture = 90,
      .shared_bytes_per_block = 232448,
      .shared_bytes_per_multiprocessor = 233472,
      .registers_per_multiprocessor = 65536,
      .threads_per_multiprocessor = 2048,
      .l2_bytes = 62914560,
      .resident_clusters = {{132, 66, 39, 30, 22, 17, 15, 15, 9, 7, 0, 7, 0, 7, 0, 7},
                            {264, 132, 79, 62, 47, 39, 32, 30, 23, 21, 0, 16, 0, 14, 0, 14}}};
  device.resident_blocks = [](const void*, int, std::int64_t) { return 1; };
  return device;
}

void expect_served(std::int64_t batch, std::int64_t m, std::int64_t n) {
  const QrPlan planned = plan_geqrf(batch, m, n, h200());
  ASSERT_NE(planned.row, nullptr) << batch << " x " << m << " x " << n;
  EXPECT_THAT(planned.plan.error, IsEmpty()) << planned.row->source;
  EXPECT_FALSE(planned.plan.nodes.empty());
}

TEST(CudaQrRows, ServeEverySizeAroundEveryBorderOfARow) {
  for (const std::int64_t n :
       {1,   2,   31,  32,   33,   63,   64,   65,   176,  352,  479,  480, 481,
        511, 512, 513, 1023, 1024, 1025, 2048, 4095, 4096, 4097, 8191, 8192})
    for (const std::int64_t batch : {1, 7, 640}) expect_served(batch, n, n);
}

TEST(CudaQrRows, ServeTallWideAndRandomShapes) {
  for (const auto& [m, n] : std::initializer_list<std::pair<int, int>>{
           {8192, 1}, {1, 8192}, {8192, 37}, {37, 8192}, {1025, 512}, {512, 1025}})
    expect_served(3, m, n);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(0, 13);
  for (int i = 0; i < 200; ++i) {
    const auto size = [&] { return static_cast<std::int64_t>(std::exp2(exponent(random))); };
    expect_served(std::max<std::int64_t>(1, size() / 8), size(), size());
  }
}

TEST(CudaQrRows, OddAndLargeShapesHaveFastRowsToo) {
  EXPECT_THAT(plan_geqrf(640, 509, 509, h200()).row->source, HasSubstr("left_strips"));
  EXPECT_THAT(plan_geqrf(60, 1023, 1022, h200()).row->source, HasSubstr("left_strips"));
  for (const auto& [m, n] : std::initializer_list<std::pair<int, int>>{
           {8192, 8192}, {4097, 4097}, {8191, 1}, {8189, 353}, {4096, 8192}, {1, 8192}})
    EXPECT_THAT(plan_geqrf(1, m, n, h200()).row->source, HasSubstr("group_panels")) << m << n;
}

// Many matrices take their memory in turns.
TEST(CudaQrRows, TheWorkspaceOfManyTallMatricesIsBounded) {
  const QrPlan planned = plan_geqrf(100000, 1025, 1, h200());
  EXPECT_LT(planned.plan.workspace_bytes, std::int64_t{9} << 30);
}

TEST(CudaQrRows, TheTimedCasesHaveTheRowsThatWereMeasuredForThem) {
  EXPECT_THAT(plan_geqrf(20, 32, 32, h200()).row->source, HasSubstr("column_lanes"));
  EXPECT_THAT(plan_geqrf(40, 176, 176, h200()).row->source, HasSubstr("column_quads"));
  EXPECT_THAT(plan_geqrf(640, 512, 512, h200()).row->source, HasSubstr("left_strips"));
  EXPECT_THAT(plan_geqrf(2, 4096, 4096, h200()).row->source, HasSubstr("group_panels"));
}

// ---- the recorder ----

int kernels[8];  // stand for kernels: only their addresses are looked at

std::int32_t launch(const kbeam_cuda_host* host, int kernel, std::initializer_list<int> after,
                    bool after_previous = false) {
  const std::vector<std::int32_t> nodes(after.begin(), after.end());
  kbeam_launch request{};
  request.kernel = &kernels[kernel];
  request.after = {nodes.data(), after_previous ? -1 : static_cast<std::int32_t>(nodes.size())};
  return host->launch(host->self, &request);
}

RecordedPlan record(kbeam_cuda_plan_function* function) {
  return record_plan(function, {}, h200());
}

TEST(LaunchRecorder, AChainStaysInTheCallersStream) {
  const RecordedPlan plan = record([](const kbeam_cuda_host* host) {
    for (int i = 0; i < 5; ++i) launch(host, i, {}, true);
  });
  EXPECT_EQ(plan.lanes, 1);
  EXPECT_THAT(plan.ends, IsEmpty());
  for (const PlanNode& node : plan.nodes) EXPECT_THAT(node.waits, IsEmpty());
}

TEST(LaunchRecorder, ABranchForksAndIsWaitedFor) {
  const RecordedPlan plan = record([](const kbeam_cuda_host* host) {
    launch(host, 0, {});
    launch(host, 1, {0});
    launch(host, 2, {0});
    launch(host, 3, {1, 2});
  });
  EXPECT_EQ(plan.lanes, 2);
  EXPECT_EQ(plan.nodes[1].lane, 0);
  EXPECT_EQ(plan.nodes[2].lane, 1);
  EXPECT_THAT(plan.nodes[2].waits, ElementsAre(0));
  EXPECT_EQ(plan.nodes[3].lane, 0);
  EXPECT_THAT(plan.nodes[3].waits, ElementsAre(2));
  EXPECT_TRUE(plan.nodes[2].is_waited_for);
  EXPECT_THAT(plan.ends, IsEmpty()) << "the last node waits for both branches";
}

TEST(LaunchRecorder, ABranchThatNothingWaitsForEndsInTheCallersStream) {
  const RecordedPlan plan = record([](const kbeam_cuda_host* host) {
    launch(host, 0, {});
    launch(host, 1, {0});
    launch(host, 2, {0});
  });
  EXPECT_THAT(plan.ends, ElementsAre(2));
  EXPECT_TRUE(plan.nodes[2].is_waited_for);
}

TEST(LaunchRecorder, BranchesOneAfterTheOtherShareAStream) {
  const RecordedPlan plan = record([](const kbeam_cuda_host* host) {
    int last = launch(host, 0, {});
    for (int i = 0; i < 20; ++i) {
      const int near = launch(host, 1, {last});
      const int far = launch(host, 2, {last});
      last = launch(host, 3, {near, far});
    }
  });
  EXPECT_EQ(plan.lanes, 2);
}

TEST(LaunchRecorder, WhatFollowsAnywayIsNotWaitedForTwice) {
  const RecordedPlan plan = record([](const kbeam_cuda_host* host) {
    launch(host, 0, {});
    launch(host, 1, {0});
    launch(host, 2, {0});
    launch(host, 3, {1, 2});
    launch(host, 4, {2, 3});
  });
  EXPECT_THAT(plan.nodes[4].waits, IsEmpty());
}

TEST(LaunchRecorder, ScratchThatIsClearedComesFirst) {
  const RecordedPlan plan = record([](const kbeam_cuda_host* host) {
    host->scratch(host->self, 1000, 0);
    host->scratch(host->self, 100, 1);
    host->scratch(host->self, 1, 0);
  });
  EXPECT_EQ(plan.zeroed_bytes, 256);
  EXPECT_EQ(plan.workspace_bytes, 256 + 1024 + 256);
  EXPECT_THAT((std::vector{plan.buffers[0].offset, plan.buffers[1].offset, plan.buffers[2].offset}),
              ElementsAre(256, 0, 1280));
}

TEST(LaunchRecorder, WhatCannotShipIsRefused) {
  EXPECT_THAT(record([](const kbeam_cuda_host* host) {
                const kbeam_gemm gemm{};
                host->gemm(host->self, &gemm);
              }).error,
              HasSubstr("product"));
  EXPECT_THAT(record([](const kbeam_cuda_host* host) { host->condition(host->self, 0); }).error,
              HasSubstr("condition"));
  EXPECT_THAT(
      record([](const kbeam_cuda_host* host) { host->table(host->self, nullptr, 0); }).error,
      HasSubstr("table"));
  EXPECT_THAT(record([](const kbeam_cuda_host* host) { launch(host, 0, {3}); }).error,
              HasSubstr("no node before it"));
  const RecordedPlan refused = record([](const kbeam_cuda_host* host) {
    host->fail(host->self, KBEAM_NOT_SUPPORTED, "too large");
  });
  EXPECT_TRUE(refused.not_supported);
}

TEST(LaunchRecorder, SizesThatNoDeviceHasAreRefused) {
  const auto error_of = [](void (*spoil)(kbeam_launch&)) {
    static void (*spoils)(kbeam_launch&);
    spoils = spoil;
    return record([](const kbeam_cuda_host* host) {
             kbeam_launch request{};
             request.kernel = &kernels[0];
             spoils(request);
             host->launch(host->self, &request);
           })
        .error;
  };
  EXPECT_EQ(error_of([](kbeam_launch&) {}), "");
  for (auto* const spoil : {+[](kbeam_launch& one) { one.grid[1] = -1; },
                            +[](kbeam_launch& one) { one.block[0] = std::int64_t{1} << 32; },
                            +[](kbeam_launch& one) { one.cluster[2] = -2; },
                            +[](kbeam_launch& one) { one.dynamic_shared_bytes = -16; }})
    EXPECT_THAT(error_of(spoil), HasSubstr("no device has"));
  EXPECT_THAT(record([](const kbeam_cuda_host* host) {
                host->scratch(host->self, std::int64_t{1} << 45, 0);
                host->scratch(host->self, INT64_MAX - 100, 0);
              }).error,
              HasSubstr("beyond 64 TiB"));
}

}  // namespace
}  // namespace kernelbeam::cuda
