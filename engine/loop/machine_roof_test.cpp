#include "loop/machine_roof.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

TEST(MachineRoof, TheLeastTimeIsThatOfTheScarcerOfBytesAndArithmeticWithRoomToSpare) {
  const MachineRoof roof{.bytes_per_ns = 10, .flops_per_ns = 100};
  EXPECT_DOUBLE_EQ(least_time_ns(roof, 1500, 0), 100);
  EXPECT_DOUBLE_EQ(least_time_ns(roof, 1500, 400'000), 1000);
}

TEST(MachineRoof, WhatWasNotMeasuredForbidsNothing) {
  EXPECT_EQ(least_time_ns({}, 1e9, 1e9), 0);
}

TEST(MachineRoof, IsMeasuredOnThisMachine) {
  const MachineRoof roof = measure_machine_roof(0, SystemClock());
  EXPECT_GT(roof.bytes_per_ns, 0);
  EXPECT_GT(roof.flops_per_ns, 0);
}

}  // namespace
}  // namespace kbeam
