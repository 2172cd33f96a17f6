#include "target/cuda/occupancy.h"

#include <gtest/gtest.h>

#include "target/cuda/planner.h"
#include "target/cuda/planner_fixture.h"

namespace kbeam {
namespace {

// Numbers of blocks that were really resident on an H200 (research notes: clusters, panels), and
// the limits that the CUDA programming guide states for compute capability 9.0.
TEST(Occupancy, MatchesWhatAnH200Does) {
  const auto description = read_device_description(test_planner_options().device_description);
  ASSERT_TRUE(description.ok()) << description.error().text();
  const kbeam_device& h200 = description->device;
  const auto blocks = [&](int registers, std::int64_t shared, int threads, std::int64_t dynamic) {
    return resident_blocks({.registers = registers, .static_shared_bytes = shared}, h200, threads,
                           dynamic);
  };
  EXPECT_EQ(blocks(128, 0, 256, 0), 2);  // panels of 8 warps: two blocks a multiprocessor
  EXPECT_EQ(blocks(127, 0, 256, 0), 2);
  EXPECT_EQ(blocks(80, 0, 256, 0), 3);
  EXPECT_EQ(blocks(64, 0, 256, 0), 4);
  EXPECT_EQ(blocks(40, 0, 256, 0), 6);
  EXPECT_EQ(blocks(255, 0, 128, 0), 2);
  EXPECT_EQ(blocks(168, 0, 128, 0), 3);
  EXPECT_EQ(blocks(32, 0, 256, 200 * 1024), 1);
  EXPECT_EQ(blocks(32, 0, 256, 100 * 1024), 2);
  EXPECT_EQ(blocks(16, 0, 32, 0), 32);
  EXPECT_EQ(blocks(16, 0, 1024, 0), 2);
  EXPECT_EQ(blocks(64, 0, 1024, 0), 1);
  EXPECT_EQ(blocks(65, 0, 1024, 0), 0);
  EXPECT_EQ(blocks(32, 0, 256, 232448), 1);
  EXPECT_EQ(blocks(32, 0, 256, 232449), 0);
  EXPECT_EQ(blocks(32, 1024, 256, 232448), 0);
  EXPECT_EQ(blocks(32, 0, 0, 0), 0);
  EXPECT_EQ(blocks(32, 0, 1025, 0), 0);
  EXPECT_EQ(resident_blocks({.registers = 32, .max_threads = 128}, h200, 256, 0), 0);
}

}  // namespace
}  // namespace kbeam
