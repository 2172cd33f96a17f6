#include "loop/budget_watch.h"

#include <gtest/gtest.h>

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

TEST(BudgetWatch, NoBudgetNoWarning) {
  BudgetWatch watch({});
  EXPECT_TRUE(watch.look({.wall_s = 1e9, .evaluations = 1 << 30, .tokens = 1LL << 50, .money = 1e9})
                  .empty());
}

}  // namespace
}  // namespace kbeam
