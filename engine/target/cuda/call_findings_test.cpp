#include "target/cuda/call_findings.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

TEST(CallFindingsTest, SpellsTheElementThatHoldsAByte) {
  // Column-major matrices of 3 x 2, batch 4: memory order batch, n, m.
  const TensorShape matrices{"H", KBEAM_OUTPUT, KBEAM_F32, {4, 3, 2}, {6, 1, 3}};
  EXPECT_EQ(spell_byte(matrices, 0), "H[0, 0, 0]");
  EXPECT_EQ(spell_byte(matrices, 4 * (2 * 6 + 1 * 3 + 2)), "H[2, 2, 1]");
  EXPECT_EQ(spell_byte(matrices, 4 * (2 * 6 + 1 * 3 + 2) + 3), "H[2, 2, 1]");
  const TensorShape doubles{"x", KBEAM_INPUT, KBEAM_F64, {10}, {1}};
  EXPECT_EQ(spell_byte(doubles, 17), "x[2]");
  const TensorShape scalar{"s", KBEAM_INPUT, KBEAM_F32, {1, 1}, {1, 1}};
  EXPECT_EQ(spell_byte(scalar, 0), "s[0, 0]");
}

}  // namespace
}  // namespace kbeam
