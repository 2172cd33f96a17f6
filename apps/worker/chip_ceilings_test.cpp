#include <gtest/gtest.h>

#include "apps/worker/device_identity.h"

namespace kbeam {
namespace {

TEST(ChipCeilings, OfAnH200) {
  const DeviceCeilings ceilings = ceilings_of({.architecture = 90,
                                               .multiprocessors = 132,
                                               .clock_hz = 1.98e9,
                                               .memory_clock_hz = 3.201e9,
                                               .memory_bus_bits = 6144,
                                               .l2_bytes = 62914560});
  // Above what copies (4.14 TB/s) and FP16 products (0.79 PFLOP/s) were measured to reach.
  EXPECT_NEAR(ceilings.bytes_per_s, 4.92e12, 0.01e12);
  EXPECT_NEAR(ceilings.flops_per_s, 1.07e15, 0.01e15);
  EXPECT_EQ(ceilings.l2_bytes, 62914560);
}

TEST(ChipCeilings, AnUnknownChipRefusesNothing) {
  const DeviceCeilings ceilings = ceilings_of({.architecture = 70, .multiprocessors = 80});
  EXPECT_EQ(ceilings.bytes_per_s, 0);
  EXPECT_EQ(ceilings.flops_per_s, 0);
}

}  // namespace
}  // namespace kbeam
