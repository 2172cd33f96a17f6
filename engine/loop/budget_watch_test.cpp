#include "loop/budget_watch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace kbeam {
namespace {

TEST(BudgetWatch, EachMarkOnceTheHighestAlone) {
  BudgetWatch watch({.wall_s = 100, .evaluations = 10, .tokens = 1000, .money = 2});
  EXPECT_TRUE(watch.look({.wall_s = 49, .evaluations = 4, .tokens = 499, .money = 0.99}).empty());
  const auto half = watch.look({.wall_s = 50, .evaluations = 4, .tokens = 500, .money = 0.99});
  ASSERT_EQ(half.size(), 2u);
  EXPECT_EQ(half[0].budget, "wall time");
  EXPECT_EQ(half[1].budget, "tokens");
  EXPECT_EQ(half[1].percent, 50);
  EXPECT_NE(half[1].text.find("500 of 1000"), std::string::npos) << half[1].text;
  EXPECT_TRUE(watch.look({.wall_s = 79, .tokens = 799}).empty());
  const auto most = watch.look({.wall_s = 79, .tokens = 990});
  ASSERT_EQ(most.size(), 1u);
  EXPECT_EQ(most[0].percent, 95) << "80 was passed in the same step";
}

TEST(BudgetWatch, EveryBudgetIsWatched) {
  const Budget limits{.wall_s = 100, .evaluations = 10, .device_s = 60, .tokens = 1000, .money = 2};
  const std::vector<std::pair<std::string, BudgetUse>> uses{{"wall time", {.wall_s = 96}},
                                                            {"evaluations", {.evaluations = 10}},
                                                            {"device time", {.device_s = 58}},
                                                            {"tokens", {.tokens = 960}},
                                                            {"money", {.money = 1.99}}};
  for (const auto& [name, use] : uses) {
    BudgetWatch watch(limits);
    const auto warnings = watch.look(use);
    ASSERT_EQ(warnings.size(), 1u) << name;
    EXPECT_EQ(warnings[0].budget, name);
    EXPECT_EQ(warnings[0].percent, 95);
  }
}

TEST(BudgetWatch, NoBudgetNoWarning) {
  BudgetWatch watch({});
  EXPECT_TRUE(watch
                  .look({.wall_s = 1e9,
                         .evaluations = 1 << 30,
                         .device_s = 1e9,
                         .tokens = 1LL << 50,
                         .money = 1e9})
                  .empty());
}

TEST(BudgetTotals, OfWhatIsLimitedOrUsed) {
  const Json totals =
      budget_totals({.wall_s = 12.4, .evaluations = 7, .device_s = 3.6}, {.wall_s = 60});
  EXPECT_EQ(budget_totals_text(totals), "wall time 12 of 60 s, evaluations 7, device time 4 s");
  EXPECT_EQ(totals[0]["most"], 60);
  EXPECT_TRUE(totals[1]["most"].is_null());
  EXPECT_EQ(budget_totals_text(budget_totals({}, {.device_s = 30, .money = 2})),
            "device time 0 of 30 s, money 0.0000 of 2.0000");
}

}  // namespace
}  // namespace kbeam
