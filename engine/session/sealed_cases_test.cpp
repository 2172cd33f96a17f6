#include "session/sealed_cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

namespace kbeam {
namespace {

Problem square_problem() {
  Problem problem;
  problem.axes = {{.name = "batch", .least = 1, .most = 4096},
                  {.name = "m", .least = 1, .most = 8192},
                  {.name = "n", .least = 1, .most = 8192},
                  {.name = "k", .derived_from = "min(m, n)"}};
  problem.families = {{.name = "dense"}, {.name = "zero"}};
  problem.regime_axis = "n";
  for (const std::int64_t n : {1, 64, 512})
    problem.cases.push_back({.name = "n" + std::to_string(n),
                             .axes = {{"batch", 61}, {"m", n}, {"n", n}, {"k", n}},
                             .family = "dense",
                             .timed = true});
  return problem;
}

TEST(DrawSealedCases, TimedOnesAreNearButNeverTheTimedShapes) {
  const Problem problem = square_problem();
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const SealedCases sealed = draw_sealed_cases(problem, {Row{}}, seed);
    ASSERT_EQ(sealed.timed.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      const std::int64_t n = problem.cases[i].axes.at("n");
      const AxisValues& axes = sealed.timed[i].axes;
      EXPECT_NE(axes.at("n"), n);
      EXPECT_GE(axes.at("n"), 1);
      EXPECT_LE(std::abs(axes.at("n") - n), std::max<std::int64_t>(1, n / 8));
      EXPECT_EQ(axes.at("m"), axes.at("n")) << "what was square stays square";
      EXPECT_EQ(axes.at("k"), axes.at("n"));
      EXPECT_EQ(axes.at("batch"), 61);
      EXPECT_EQ(sealed.timed[i].family, "dense");
      EXPECT_EQ(sealed.timed[i].pool, Pool::sealed_pool);
      EXPECT_FALSE(sealed.timed[i].timed) << "it carries no score";
    }
  }
}

TEST(DrawSealedCases, CheckedOnesStandOnBothSidesOfEveryBoundary) {
  const Problem problem = square_problem();
  const std::vector<Row> rows = {{.axis_least = 0, .axis_most = 180},
                                 {.axis_least = 181, .axis_most = INT64_MAX}};
  const SealedCases sealed = draw_sealed_cases(problem, rows, 7);
  std::set<std::int64_t> between;
  for (const Case& the_case : sealed.checked)
    if (the_case.name.starts_with("between_")) between.insert(the_case.axes.at("n"));
  EXPECT_EQ(between, (std::set<std::int64_t>{180, 181}));
  EXPECT_TRUE(std::all_of(sealed.checked.begin(), sealed.checked.end(), [](const Case& one) {
    return one.axes.at("batch") <= 3 && one.pool == Pool::sealed_pool;
  }));
}

TEST(DrawSealedCases, ASeedBringsTheSameCasesBackAndAnotherOneOthers) {
  const Problem problem = square_problem();
  const auto shapes = [&](std::uint64_t seed) {
    std::vector<AxisValues> list;
    for (const Case& one : draw_sealed_cases(problem, {Row{}}, seed).timed)
      list.push_back(one.axes);
    return list;
  };
  EXPECT_EQ(shapes(5), shapes(5));
  std::set<std::vector<AxisValues>> different;
  for (std::uint64_t seed = 0; seed < 50; ++seed) different.insert(shapes(seed));
  EXPECT_GT(different.size(), 40U);
}

}  // namespace
}  // namespace kbeam
