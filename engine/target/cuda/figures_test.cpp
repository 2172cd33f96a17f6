#include "target/cuda/figures.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>

namespace kbeam {
namespace {

std::uint64_t cell(float value, std::uint32_t where) {
  return std::uint64_t{std::bit_cast<std::uint32_t>(value)} << 32 | where;
}

LaunchPlan check_with(std::vector<PlanFigure> figures) {
  LaunchPlan plan;
  plan.figures = std::move(figures);
  return plan;
}

const PlanFigure kResidual{"column_residual", "eps", 10, {"matrix", "column"}, {640, 512}, false};
const PlanFigure kNoInfinities{"infinities", "", 0, {}, {}, true};

TEST(FiguresTest, SpellsPlacesLastNameFastest) {
  EXPECT_EQ(spell_place(kResidual, 3 * 512 + 7), "matrix 3, column 7");
  EXPECT_EQ(spell_place(kNoInfinities, 12), "");
  EXPECT_EQ(spell_place({"f", "", 1, {"a", "b", "c"}, {2, 3, 4}, false}, 23), "a 1, b 2, c 3");
}

TEST(FiguresTest, PassesAtTheLimitAndFailsAbove) {
  const LaunchPlan plan = check_with({kResidual});
  EXPECT_EQ(report_of_figures(plan, std::vector{cell(10, 0)}).verdict, Verdict::accepted);
  const CheckReport report =
      report_of_figures(plan, std::vector{cell(std::nextafterf(10, 11), 512 + 1)});
  EXPECT_EQ(report.verdict, Verdict::wrong_value);
  EXPECT_EQ(report.sentence, "matrix 1, column 1: column_residual is 10 eps, the limit is 10");
}

TEST(FiguresTest, ANanFailsAnyLimit) {
  const LaunchPlan plan = check_with({kResidual});
  const CheckReport report =
      report_of_figures(plan, std::vector{std::uint64_t{0x7fffffff} << 32 | 5});
  EXPECT_EQ(report.verdict, Verdict::not_finite);
  EXPECT_TRUE(std::isnan(report.figures[0].value));
}

TEST(FiguresTest, TheFirstFailureSpeaksAndAllFiguresAreKept) {
  const LaunchPlan plan = check_with({kNoInfinities, kResidual});
  const CheckReport report = report_of_figures(plan, std::vector{cell(1, 0), cell(99, 0)});
  EXPECT_EQ(report.verdict, Verdict::not_finite);
  EXPECT_EQ(report.sentence, "infinities is 1 , the limit is 0");
  EXPECT_THAT(report.figures, testing::SizeIs(2));
}

TEST(FiguresTest, ACheckWithoutFiguresIsNoPass) {
  EXPECT_EQ(report_of_figures(check_with({}), {}).verdict, Verdict::engine_failed);
  EXPECT_EQ(report_of_figures(check_with({kResidual}), {}).verdict, Verdict::engine_failed);
}

}  // namespace
}  // namespace kbeam
