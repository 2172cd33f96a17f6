// The table of rows and the bounded plan cache.
#include "qr/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kbeam/cpu_plan.h>
#include <kernelbeam/qr.h>

#include "plan_cache.h"

namespace kernelbeam {
namespace {

TEST(Rows, TheFirstThatFitsIsChosen) {
  const QrRow rows[] = {{nullptr, InstructionSet::any, 8, 16, "first", "", ""},
                        {nullptr, InstructionSet::any, 1, 16, "second", "", ""}};
  EXPECT_STREQ(choose_qr_row(rows, 8)->source, "first");
  EXPECT_STREQ(choose_qr_row(rows, 7)->source, "second");
  EXPECT_EQ(choose_qr_row(rows, 17), nullptr);
}

TEST(Rows, TheShippedTableServesEverySizeOnThisProcessor) {
  for (std::int64_t n = 1; n <= kGeqrfMostRows; ++n) {
    RowInfo row;
    ASSERT_EQ(find_geqrf_row(n, &row), Status::ok) << n;
    ASSERT_STRNE(row.source, "");
    ASSERT_STRNE(row.proof, "") << "a row without a proof line, for n = " << n;
  }
  RowInfo row;
  EXPECT_EQ(find_geqrf_row(0, &row), Status::bad_shape);
  EXPECT_EQ(find_geqrf_row(1, nullptr), Status::null_pointer);
}

TEST(Rows, EveryRowIsNamedAndOrdered) {
  for (const QrRow& row : qr_rows()) {
    EXPECT_NE(row.plan, nullptr);
    EXPECT_LE(row.least_columns, row.most_columns);
    EXPECT_STRNE(name_of(row.instruction_set), "unknown");
  }
}

kbeam::CpuPlan any_plan() {
  return kbeam::CpuPlan::record([](const kbeam_host*) {}, {}, 1);
}

TEST(PlanCache, DropsThePlanThatWasNotUsedForLongest) {
  PlanCache<kbeam::CpuPlan> cache(2);
  const auto one = cache.insert({1, 0, 0, 0}, any_plan());
  cache.insert({2, 0, 0, 0}, any_plan());
  EXPECT_EQ(cache.find({1, 0, 0, 0}), one);
  cache.insert({3, 0, 0, 0}, any_plan());
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(cache.find({2, 0, 0, 0}), nullptr);
  EXPECT_EQ(cache.find({1, 0, 0, 0}), one);
  EXPECT_NE(cache.find({3, 0, 0, 0}), nullptr);
}

}  // namespace
}  // namespace kernelbeam
