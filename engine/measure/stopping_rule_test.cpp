#include "measure/stopping_rule.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

TEST(StoppingRule, NamesItsKindInItsText) {
  EXPECT_EQ(sequential_rule("promote").text(), "promote: sequential 31, 61, 121, 241");
  const StoppingRule fixed{.name = "confirm", .pairs_per_process = 15, .processes = 2};
  EXPECT_EQ(fixed.text(), "confirm: fixed 15 x 2");
}

TEST(StoppingRule, ASequentialRuleLooksAtItsNumbersOfPairsEachOverFreshProcesses) {
  const StoppingRule rule = sequential_rule("promote");
  std::vector<int> pairs_at_looks;
  std::vector<int> processes_at_looks;
  int pairs = 0;
  for (int process = 0; process < process_count(rule); ++process) {
    EXPECT_GE(pairs_in_process(rule, process), 5);
    EXPECT_LE(pairs_in_process(rule, process), 10);
    pairs += pairs_in_process(rule, process);
    const std::optional<int> look = look_after(rule, process);
    if (!look) continue;
    pairs_at_looks.push_back(pairs);
    processes_at_looks.push_back(process + 1);
    EXPECT_EQ(*look, static_cast<int>(pairs_at_looks.size()));
  }
  EXPECT_EQ(pairs_at_looks, (std::vector{31, 61, 121, 241}));
  EXPECT_EQ(processes_at_looks, (std::vector{6, 12, 18, 30}));
  EXPECT_EQ(pairs_in_process(rule, 0), 6);
  EXPECT_EQ(pairs_in_process(rule, 30), 0);
}

TEST(StoppingRule, AFixedRuleHasOneLookAtItsEnd) {
  const StoppingRule rule{.name = "fixed", .pairs_per_process = 31, .processes = 3};
  EXPECT_EQ(process_count(rule), 3);
  EXPECT_FALSE(look_after(rule, 1));
  EXPECT_EQ(look_after(rule, 2), 1);
  EXPECT_DOUBLE_EQ(interval_confidence(rule), 0.99);
}

TEST(StoppingRule, SharesItsRiskByLooksAndClaims) {
  StoppingRule rule = sequential_rule("promote");
  EXPECT_DOUBLE_EQ(interval_confidence(rule), 1 - 0.01 / 4);
  rule.claims = 6;
  EXPECT_DOUBLE_EQ(interval_confidence(rule), 1 - 0.01 / 24);
  EXPECT_DOUBLE_EQ(joint_confidence(rule), 1 - 0.01 / 4);
  const StoppingRule may_end_clear{.name = "c", .processes = 2, .clear_ratio = 1.1};
  EXPECT_DOUBLE_EQ(interval_confidence(may_end_clear), 1 - 0.01 / 2);
}

Measurement measured(double speedup, double low, double high) {
  Measurement measurement;
  measurement.summary.speedup = speedup;
  measurement.summary.low = low;
  measurement.summary.high = high;
  return measurement;
}

TEST(MayEndEarly, OnlyWhenEveryCaseIsClear) {
  const StoppingRule rule{.name = "test", .clear_ratio = 1.1};
  EXPECT_TRUE(may_end_early(rule, std::vector{measured(1.3, 1.2, 1.4), measured(0.5, 0.4, 0.6)}));
  EXPECT_FALSE(may_end_early(rule, std::vector{measured(1.3, 1.2, 1.4), measured(1.2, 1.05, 1.3)}));
  EXPECT_FALSE(may_end_early(rule, {}));
}

TEST(MayEndEarly, OnlyWhenNoCaseCanStillWin) {
  const StoppingRule rule{.name = "test", .futile_speedup = 1.005};
  EXPECT_TRUE(may_end_early(rule, std::vector{measured(1.0, 0.9, 1.1), measured(0.99, 0.9, 1.1)}));
  EXPECT_FALSE(may_end_early(rule, std::vector{measured(1.0, 0.9, 1.1), measured(1.02, 0.9, 1.1)}));
}

TEST(MayEndEarly, NeverByDefault) {
  EXPECT_FALSE(may_end_early({.name = "plain"}, std::vector{measured(9, 8, 10)}));
}

TEST(MaySkipPairs, OnlyWhenEveryPairIsClearTheSameWay) {
  StoppingRule rule{.name = "r", .pairs_when_clear = 3, .pairs_clear_ratio = 2};
  const auto skips = [&](std::vector<double> candidate, std::vector<double> reference) {
    return may_skip_pairs(rule, {std::move(candidate), std::move(reference), {}, {}});
  };
  EXPECT_TRUE(skips({1, 1, 1}, {2.1, 3, 4}));
  EXPECT_TRUE(skips({5, 5, 5}, {2, 1, 1}));
  EXPECT_FALSE(skips({1, 1}, {3, 3}));
  EXPECT_FALSE(skips({1, 1, 1}, {3, 3, 1.9}));
  EXPECT_FALSE(skips({1, 1, 9}, {3, 3, 1}));
  rule.pairs_when_clear = 0;
  EXPECT_FALSE(skips({1, 1, 1}, {9, 9, 9}));
}

TEST(ChallengeConfidence, RisksLessWithEveryTestAndMoreWithEverySuccess) {
  EXPECT_DOUBLE_EQ(challenge_confidence(1, 0), 0.99);  // never more than one in a hundred
  EXPECT_LT(challenge_confidence(10, 0), challenge_confidence(11, 0));
  EXPECT_GT(challenge_confidence(10, 0), challenge_confidence(10, 3));
}

TEST(ChallengeConfidence, WithoutASuccessTheWholeSearchRisksItsAllowance) {
  double risk = 0;
  for (int test = 1; test <= 100'000; ++test) risk += 1 - challenge_confidence(test, 0);
  EXPECT_LT(risk, 0.05);
  EXPECT_GT(risk, 0.02);
}

}  // namespace
}  // namespace kbeam
