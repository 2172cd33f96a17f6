// What a promotion needs to be a win, from its figures alone.
#include "loop/promotion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbeam {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

Promotion faster_promotion() {
  Promotion promotion;
  promotion.evaluation.verdict = Verdict::accepted;
  promotion.evaluation.measurements = {{.case_name = "small", .noise_floor = 0.01},
                                       {.case_name = "large", .noise_floor = 0.05}};
  promotion.geomean = {.speedup = 1.2, .low = 1.1, .high = 1.3};
  return promotion;
}

TEST(WhyNotWon, NothingForOneThatIsRightAndFaster) {
  EXPECT_THAT(why_not_won(faster_promotion()), IsEmpty());
}

TEST(WhyNotWon, ASlowerCaseRefusesItUnlessTheGoalAllowsAsMany) {
  Promotion promotion = faster_promotion();
  promotion.slower_cases = {"large"};
  EXPECT_THAT(why_not_won(promotion), HasSubstr("slower than the baseline on large"));
  EXPECT_THAT(why_not_won(promotion), HasSubstr("slower <= 1"));
  promotion.slower_allowed = 1;
  EXPECT_THAT(why_not_won(promotion), IsEmpty());
  promotion.slower_cases = {"small", "large"};
  EXPECT_THAT(why_not_won(promotion), HasSubstr("only 1 may lose"));
}

TEST(WhyNotWon, TheMeanMustClearTheMeanNoiseFloor) {
  Promotion promotion = faster_promotion();
  promotion.geomean.low = 1.04;
  EXPECT_THAT(why_not_won(promotion), IsEmpty());
  promotion.geomean.low = 1.02;
  EXPECT_THAT(why_not_won(promotion), HasSubstr("noise floor of 3.0 %"));
}

TEST(WhyNotWon, AWrongOneHasItsOwnReason) {
  Promotion promotion = faster_promotion();
  promotion.evaluation.verdict = Verdict::wrong_value;
  promotion.evaluation.reason = "case small: element 3 is off";
  promotion.slower_cases = {"large"};
  EXPECT_EQ(why_not_won(promotion), "case small: element 3 is off");
}

}  // namespace
}  // namespace kbeam
