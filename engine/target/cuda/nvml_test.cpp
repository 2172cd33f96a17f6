#include "target/cuda/nvml.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

TEST(NvmlTest, NamesThrottleReasons) {
  EXPECT_EQ(throttle_text(0), "none");
  EXPECT_EQ(throttle_text(1), "none");  // idle
  EXPECT_EQ(throttle_text(0x4 | 0x40), "software power cap, hardware thermal slowdown");
  EXPECT_EQ(throttle_text(0x4000), "unknown bits 0x4000");
}

}  // namespace
}  // namespace kbeam
