// Patterns of every element type: written, damaged, left in place.
#include "target/cpu/poison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace kbeam {
namespace {

class PoisonOfType : public ::testing::TestWithParam<kbeam_element_type> {};

TEST_P(PoisonOfType, IsFoundUndamagedThenAtTheDamagedByte) {
  std::vector<std::uint64_t> memory(4097);
  auto* bytes = reinterpret_cast<std::byte*>(memory.data());
  const std::size_t size = memory.size() * 8;
  const PoisonPattern pattern{0x123456789abcdefu, GetParam()};
  write_poison(bytes, size, 0, pattern);
  EXPECT_FALSE(find_damage(bytes, size, 0, pattern));
  EXPECT_FALSE(find_damage(bytes + 64, size - 64, 64, pattern))
      << "a part is compared by its position";
  EXPECT_TRUE(find_damage(bytes, size, 8, pattern));
  EXPECT_TRUE(find_damage(bytes, size, 0, {pattern.key + 1, GetParam()}));
  for (const std::size_t at : {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, size - 1}) {
    bytes[at] ^= std::byte{1};
    EXPECT_EQ(find_damage(bytes, size, 0, pattern), at);
    bytes[at] ^= std::byte{1};
  }
}

TEST_P(PoisonOfType, TheFirstUntouchedElementIsFound) {
  const std::size_t width = GetParam() == KBEAM_F64 || GetParam() == KBEAM_I64 ? 8 : 4;
  std::vector<std::uint64_t> memory(2000);
  auto* bytes = reinterpret_cast<std::byte*>(memory.data());
  const PoisonPattern pattern{99, GetParam()};
  write_poison(bytes, memory.size() * 8, 0, pattern);
  EXPECT_EQ(find_poisoned_element(bytes, memory.size() * 8, 0, pattern), 0u);
  std::memset(bytes, 1, 1800 * width);
  EXPECT_EQ(find_poisoned_element(bytes, memory.size() * 8, 0, pattern), 1800u);
  std::memset(bytes, 1, memory.size() * 8);
  EXPECT_FALSE(find_poisoned_element(bytes, memory.size() * 8, 0, pattern));
}

INSTANTIATE_TEST_SUITE_P(Types, PoisonOfType,
                         ::testing::Values(KBEAM_F32, KBEAM_F64, KBEAM_I32, KBEAM_I64));

TEST(Poison, FloatingPointPatternsAreNaN) {
  std::vector<float> floats(1001);
  write_poison(floats.data(), floats.size() * 4, 0, {7, KBEAM_F32});
  for (const float value : floats) ASSERT_TRUE(std::isnan(value));
  std::vector<double> doubles(1000);
  write_poison(doubles.data(), doubles.size() * 8, 0, {7, KBEAM_F64});
  for (const double value : doubles) ASSERT_TRUE(std::isnan(value));
}

// x86 makes 0xffc00000 and a GPU 0x7fffffff: an output that is honestly NaN is no untouched one.
TEST(Poison, NoFloatIsANaNThatArithmeticMakes) {
  alignas(64) std::uint32_t words[4096];
  for (std::uint64_t key = 0; key < 64; ++key) {
    write_poison(words, sizeof words, 0, {key, KBEAM_F32});
    for (const std::uint32_t word : words) {
      ASSERT_NE(word & 0x003fffffu, 0u);
      ASSERT_NE(word & 0x00200000u, 0x00200000u) << "0x7fffffff needs this bit";
      ASSERT_EQ(word & 1u, 1u) << "0x7fc00000 lacks this bit";
      ASSERT_EQ(word & 0x00400000u, 0u)
          << "a quiet NaN may be an honest one, with the payload of an input";
    }
  }
}

TEST(Poison, AnOddNumberOfFloatsIsCovered) {
  std::vector<float> floats(3, 1.f);
  write_poison(floats.data(), 12, 0, {7, KBEAM_F32});
  EXPECT_TRUE(std::isnan(floats[2]));
  EXPECT_FALSE(find_damage(floats.data(), 12, 0, {7, KBEAM_F32}));
}

TEST(Poison, EveryFloatCanBeTheUntouchedOne) {
  for (std::size_t untouched = 0; untouched < 21; ++untouched) {
    std::vector<float> floats(21);
    write_poison(floats.data(), 84, 0, {8, KBEAM_F32});
    for (std::size_t i = 0; i < 21; ++i)
      if (i != untouched) floats[i] = 1.f;
    EXPECT_EQ(find_poisoned_element(floats.data(), 84, 0, {8, KBEAM_F32}), untouched);
  }
}

TEST(Poison, OneLuckyIntegerIsNotCalledUntouched) {
  std::vector<std::int32_t> numbers(1000);
  write_poison(numbers.data(), 4000, 0, {3, KBEAM_I32});
  const std::int32_t lucky = numbers[500];
  std::fill(numbers.begin(), numbers.end(), 0);
  numbers[500] = lucky;
  EXPECT_FALSE(find_poisoned_element(numbers.data(), 4000, 0, {3, KBEAM_I32}));
}

}  // namespace
}  // namespace kbeam
