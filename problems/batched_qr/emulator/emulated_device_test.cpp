// The emulated device by itself: what is right runs, and each mistake that it knows is an error.
#include "emulated_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "emulated_instructions.h"

namespace kbeam {
namespace {

using testing::Each;

float* shared_floats() {
  return reinterpret_cast<float*>(emulated_shared_memory());
}
std::uint64_t* shared_barrier() {
  return reinterpret_cast<std::uint64_t*>(emulated_shared_memory() + 1024);
}

// Every block sends a number to every other and adds up what it gets.
void sum_over_cluster(std::vector<float>& sums, bool waits) {
  const int ranks = cluster_size(), rank = cluster_rank();
  if (threadIdx.x == 0) {
    barrier_init(shared_barrier(), 1);
    barrier_expect(shared_barrier(), ranks * 4);
  }
  cluster_sync();
  if (threadIdx.x < static_cast<unsigned>(ranks))
    send(shared_floats() + rank, static_cast<float>(rank + 1), shared_barrier(),
         static_cast<int>(threadIdx.x));
  if (waits) barrier_wait(shared_barrier(), 0);
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int r = 0; r < ranks; ++r) sum += shared_floats()[r];
    sums[blockIdx.x] = sum;
  }
  barrier_wait(shared_barrier(), 0);
  cluster_sync();
}

TEST(EmulatedDevice, BlocksOfAClusterSendToEachOther) {
  std::vector<float> sums(8);
  run_emulated_grid({.grid = 8, .block = 64, .cluster = {4, 1}, .shared_bytes = 2048},
                    [&] { sum_over_cluster(sums, true); });
  EXPECT_THAT(sums, Each(10.0f));
}

TEST(EmulatedDevice, WhatIsReadBeforeTheWaitMayNotBeThereYet) {
  std::vector<float> sums(64);
  run_emulated_grid({.grid = 64, .block = 64, .cluster = {4, 1}, .shared_bytes = 2048},
                    [&] { sum_over_cluster(sums, false); });
  EXPECT_THAT(sums, testing::Contains(testing::Ne(10.0f)));
}

TEST(EmulatedDevice, AClusterOfOneHasNoOtherBlocks) {
  std::vector<float> sums(1);
  EXPECT_THROW(run_emulated_grid({.grid = 1, .block = 64, .cluster = {1, 1}, .shared_bytes = 2048},
                                 [&] { sum_over_cluster(sums, true); }),
               std::logic_error);
}

TEST(EmulatedDevice, AWriteBeyondTheSharedMemoryIsSeen) {
  EXPECT_THROW(run_emulated_grid({.grid = 1, .block = 32, .shared_bytes = 256},
                                 [] { shared_floats()[64 + threadIdx.x] = 1; }),
               std::logic_error);
}

TEST(EmulatedDevice, ACopyBesideItsPiecesIsSeen) {
  const std::vector<float4> from(4);
  for (const int slip : {0, 2}) {
    const auto run = [&] {
      run_emulated_grid({.grid = 1, .block = 32, .shared_bytes = 2048}, [&] {
        if (threadIdx.x == 0) copy_16(shared_floats() + slip, from.data());
        wait_copies<0>();
      });
    };
    if (slip == 0)
      EXPECT_NO_THROW(run());
    else
      EXPECT_THROW(run(), std::logic_error);
  }
}

TEST(EmulatedDevice, ThreadsThatWaitAtDifferentPlacesAreSeen) {
  EXPECT_THROW(run_emulated_grid({.grid = 1, .block = 64, .cluster = {1, 1}, .shared_bytes = 256},
                                 [] {
                                   if (threadIdx.x < 32)
                                     __syncthreads();
                                   else
                                     cluster_sync();
                                 }),
               std::logic_error);
}

TEST(EmulatedDevice, AWarpgroupMultipliesFragmentsAndPieces) {
  // a is the identity in its first 16 rows, b holds row + column / 128 in pieces of 8 x 8.
  std::vector<float> results(64 * 128, -1);
  run_emulated_grid({.grid = 1, .block = 128, .shared_bytes = 16 * 128 * 2}, [&] {
    auto* halves = reinterpret_cast<std::uint16_t*>(emulated_shared_memory());
    for (int e = static_cast<int>(threadIdx.x); e < 16 * 128; e += 128) {
      const int k = e / 128, column = e % 128;
      halves[(k / 8 * 16 + column / 8) * 64 + column % 8 * 8 + k % 8] =
          emulated_to_half(static_cast<float>(k) + static_cast<float>(column) / 128);
    }
    __syncthreads();
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int g = lane / 4, t = lane % 4;
    std::uint32_t a[4];
    for (int r = 0; r < 4; ++r) {
      const int row = warp * 16 + g + r % 2 * 8, column = 2 * t + r / 2 * 8;
      a[r] = to_halves(row == column ? 1.0f : 0.0f, row == column + 1 ? 1.0f : 0.0f);
    }
    float sums[16][4];
    multiply_wide<0>(sums, a, operand(shared_address(halves), 16 * 128, 128), 0);
    wait_wide<0>();
    for (int j = 0; j < 16; ++j)
      for (int e = 0; e < 4; ++e)
        results[static_cast<std::size_t>((warp * 16 + g + e / 2 * 8) * 128 + 8 * j + 2 * t +
                                         e % 2)] = sums[j][e];
  });
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 128; ++column)
      ASSERT_EQ(results[static_cast<std::size_t>(row * 128 + column)],
                row < 16 ? static_cast<float>(row) + static_cast<float>(column) / 128 : 0.0f)
          << row << ", " << column;
}

}  // namespace
}  // namespace kbeam
