// Inputs: every family is there, decided by seed and key alone, and stays itself when it is
// freshened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "families.h"
#include "problem/problem_library.h"
#include "qr_bench.h"

namespace kbeam::qr_test {
namespace {

bool same_bytes(const std::vector<float>& x, const std::vector<float>& y) {
  return std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

CaseMemory generated(const Case& the_case, std::uint64_t seed) {
  CaseMemory memory(the_case);
  problem_code().generate(CaseAdapter(the_case), seed, memory.inputs());
  return memory;
}

CaseMemory freshened(const Case& the_case, CaseMemory& base, std::uint64_t key) {
  CaseMemory memory(the_case);
  problem_code().freshen(CaseAdapter(the_case), key, base.inputs(), memory.inputs());
  return memory;
}

double column_norm(CaseMemory& memory, std::int64_t matrix, std::int64_t column) {
  double sum = 0;
  for (std::int64_t i = 0; i < memory.m(); ++i)
    sum += std::pow(memory.a(matrix)[column * memory.m() + i], 2);
  return std::sqrt(sum);
}

TEST(Families, AreThoseOfTheProblemFile) {
  std::vector<std::string> declared, coded;
  for (const FamilySpec& family : whole_problem().families) declared.push_back(family.name);
  for (const batched_qr::Family& family : batched_qr::kFamilies) coded.emplace_back(family.name);
  EXPECT_EQ(declared, coded);
}

TEST(Families, AreDecidedByTheSeed) {
  for (const FamilySpec& family : whole_problem().families) {
    if (family.name == "zero") continue;
    const Case one = make_case(6, 12, 10, family.name);
    EXPECT_TRUE(same_bytes(generated(one, 1).all_of_a(), generated(one, 1).all_of_a()))
        << family.name;
    EXPECT_FALSE(same_bytes(generated(one, 1).all_of_a(), generated(one, 2).all_of_a()))
        << family.name;
  }
}

TEST(Families, HoldOneNaNOrInfInAMatrixAtLeast) {
  for (const char* family : {"one_nan", "one_inf"})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Case one = make_case(5, 6, 4, family);
      CaseMemory memory = generated(one, seed);
      int special = 0;
      for (const float x : memory.all_of_a()) special += std::isfinite(x) ? 0 : 1;
      EXPECT_GE(special, 1) << family;
      EXPECT_LE(special, 5) << family;
    }
}

// The largest finite demand of the grade is really made, and never passed.
TEST(Families, ReachQuarterOfTheRangeAndStayBelow) {
  const Case one = make_case(20, 40, 30, "huge");
  CaseMemory base = generated(one, 3);
  CaseMemory fresh = freshened(one, base, 4);
  double largest = 0;
  for (std::int64_t b = 0; b < fresh.batch(); ++b)
    for (std::int64_t j = 0; j < fresh.n(); ++j)
      largest = std::max(largest, column_norm(fresh, b, j));
  EXPECT_LE(largest, FLT_MAX / 4);
  EXPECT_GE(largest, 0.99 * FLT_MAX / 4);
}

TEST(Families, MixHardMembersIntoEveryBatch) {
  const Case one = make_case(16, 24, 24, "mixed");
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CaseMemory mixed = generated(one, seed);
    CaseMemory dense = generated(make_case(16, 24, 24, "dense"), seed);
    int hard = 0;
    for (std::int64_t b = 0; b < 16; ++b)
      hard += std::memcmp(mixed.a(b), dense.a(b), 24 * 24 * sizeof(float)) == 0 ? 0 : 1;
    EXPECT_GE(hard, 1);
    EXPECT_LT(hard, 12);
  }
}

TEST(Freshening, GivesNewContentForEveryKey) {
  for (const FamilySpec& family : whole_problem().families) {
    const Case one = make_case(6, 16, 16, family.name);
    CaseMemory base = generated(one, 1);
    CaseMemory first = freshened(one, base, 1);
    EXPECT_FALSE(same_bytes(first.all_of_a(), base.all_of_a())) << family.name;
    EXPECT_FALSE(same_bytes(first.all_of_a(), freshened(one, base, 2).all_of_a())) << family.name;
    EXPECT_TRUE(same_bytes(first.all_of_a(), freshened(one, base, 1).all_of_a())) << family.name;
  }
}

// Exact: every column keeps its magnitudes up to one power of two for the whole matrix, and
// whatever is zero, NaN or Inf stays so. This is what keeps a matrix in its family.
TEST(Freshening, ChangesNothingButOrderSignsAndOneScale) {
  for (const FamilySpec& family : whole_problem().families) {
    const Case one = make_case(6, 15, 11, family.name);
    CaseMemory base = generated(one, 1);
    CaseMemory fresh = freshened(one, base, 9);
    const auto magnitudes = [&](CaseMemory& memory, std::int64_t b, std::int64_t j) {
      std::vector<float> sorted;
      for (std::int64_t i = 0; i < 15; ++i) sorted.push_back(std::fabs(memory.a(b)[j * 15 + i]));
      std::sort(sorted.begin(), sorted.end(),
                [](float x, float y) { return std::isnan(x) ? false : std::isnan(y) || x < y; });
      return sorted;
    };
    for (std::int64_t b = 0; b < 6; ++b) {
      std::set<float> scales;
      for (std::int64_t j = 0; j < 11; ++j) {
        const std::vector<float> before = magnitudes(base, b, j), after = magnitudes(fresh, b, j);
        for (std::size_t i = 0; i < before.size(); ++i) {
          EXPECT_EQ(std::fpclassify(before[i]) == FP_ZERO, std::fpclassify(after[i]) == FP_ZERO)
              << family.name;
          EXPECT_EQ(std::isfinite(before[i]), std::isfinite(after[i])) << family.name;
          if (before[i] != 0 && std::isfinite(before[i])) scales.insert(after[i] / before[i]);
        }
      }
      EXPECT_LE(scales.size(), 1u) << family.name << ", matrix " << b;
      for (const float scale : scales)
        EXPECT_EQ(std::exp2(std::round(std::log2(scale))), scale) << family.name;
    }
  }
}

// A sign for every row and one for every column, not one for the matrix.
TEST(Freshening, DrawsSignsByRowAndByColumn) {
  const Case one = make_case(1, 30, 30, "row_graded");  // the rows stay in place
  CaseMemory base = generated(one, 1);
  CaseMemory fresh = freshened(one, base, 3);
  const auto flipped = [&](std::int64_t i, std::int64_t j) {
    return std::signbit(base.a(0)[j * 30 + i]) != std::signbit(fresh.a(0)[j * 30 + i]);
  };
  int rows = 0, columns = 0;
  for (std::int64_t i = 0; i < 30; ++i) {
    rows += flipped(i, 0) ? 1 : 0;
    columns += flipped(0, i) ? 1 : 0;
  }
  EXPECT_THAT(rows, testing::AllOf(testing::Gt(3), testing::Lt(27)));
  EXPECT_THAT(columns, testing::AllOf(testing::Gt(3), testing::Lt(27)));
}

TEST(Freshening, KeepsShapesThatARowPermutationWouldBreak) {
  for (const char* family : {"upper", "kahan", "diagonal", "identity", "band"}) {
    const Case one = make_case(4, 40, 40, family);
    CaseMemory base = generated(one, 1);
    CaseMemory fresh = freshened(one, base, 9);
    for (std::size_t i = 0; i < base.all_of_a().size(); ++i)
      EXPECT_EQ(base.all_of_a()[i] == 0, fresh.all_of_a()[i] == 0) << family;
  }
}

}  // namespace
}  // namespace kbeam::qr_test
