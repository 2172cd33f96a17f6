#include "measure/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace kbeam {
namespace {

PairedSamples pairs_with_ratio(double ratio, int count, double spread, std::uint64_t seed,
                               int processes = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, spread);
  PairedSamples samples;
  for (int i = 0; i < count; ++i) {
    samples.candidate_ns.push_back(1e6 * std::exp(noise(random)));
    samples.reference_ns.push_back(1e6 * ratio * std::exp(noise(random)));
    samples.candidate_first.push_back(i % 2);
    samples.process.push_back(i % processes);
  }
  return samples;
}

TEST(Median, IsUnknownForNothingAndTheMiddleOtherwise) {
  EXPECT_TRUE(std::isnan(median({})));
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
}

TEST(MedianInterval, IsInfiniteWhenTheConfidenceCannotBeReached) {
  // Seven values cover the median with at most 1 - 2 / 128 = 98.4 %; eight reach 99.2 %.
  const std::vector<double> seven{1, 2, 3, 4, 5, 6, 7};
  EXPECT_TRUE(std::isinf(median_interval(seven, 0.99).low));
  const std::vector<double> eight{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(median_interval(eight, 0.99).low, 1);
  EXPECT_EQ(median_interval(eight, 0.99).high, 8);
}

TEST(MedianInterval, UsesTheRanksOfTheBinomialTable) {
  // n = 31, 99 %: P(B < 8) = 0.0017 and P(B < 9) = 0.0053 > 0.005, so the ranks are 8 and 24.
  std::vector<double> values;
  for (int i = 1; i <= 31; ++i) values.push_back(i);
  EXPECT_EQ(median_interval(values, 0.99).low, 8);
  EXPECT_EQ(median_interval(values, 0.99).high, 24);
}

TEST(MedianInterval, CoversTheTrueMedianAsOftenAsItSays) {
  std::mt19937_64 random(7);
  std::exponential_distribution<double> skewed(1);
  const double truth = std::log(2);
  int covered = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 27; ++i) values.push_back(skewed(random));
    const Interval interval = median_interval(values, 0.99);
    covered += interval.low <= truth && truth <= interval.high ? 1 : 0;
  }
  EXPECT_GE(covered, kTrials * 0.988);
}

TEST(SummarisePairs, CallsACleanGainFasterAndItsMirrorSlower) {
  const PairedSummary gain = summarise_pairs(pairs_with_ratio(1.10, 31, 0.01, 1), 0.99, 0.005);
  EXPECT_EQ(gain.comparison, Comparison::faster);
  EXPECT_NEAR(gain.speedup, 1.10, 0.01);
  const PairedSummary loss = summarise_pairs(pairs_with_ratio(1 / 1.10, 31, 0.01, 1), 0.99, 0.005);
  EXPECT_EQ(loss.comparison, Comparison::slower);
}

TEST(SummarisePairs, RarelyCallsIdenticalKernelsFaster) {
  int called = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    called += summarise_pairs(pairs_with_ratio(1, 31, 0.05, seed), 0.99, 0.005).comparison ==
                      Comparison::faster
                  ? 1
                  : 0;
  EXPECT_LE(called, 10);
}

TEST(SummarisePairs, IsAmbiguousWhenPairsAreTooFew) {
  EXPECT_EQ(summarise_pairs(pairs_with_ratio(5, 5, 0.01, 3), 0.99, 0.005).comparison,
            Comparison::ambiguous);
}

TEST(SummarisePairs, IsAmbiguousWhenFreshProcessesDisagree) {
  PairedSamples samples = pairs_with_ratio(1.03, 40, 0.001, 5, 2);
  for (std::size_t i = 0; i < samples.process.size(); ++i)
    if (samples.process[i] == 1) samples.candidate_ns[i] *= 1.06;  // the second process is slower
  const PairedSummary summary = summarise_pairs(samples, 0.99, 0.005);
  EXPECT_LT(summary.low, 1);
  EXPECT_GT(summary.high, 1);
  EXPECT_EQ(summary.comparison, Comparison::ambiguous);
}

TEST(GeometricMean, IsUnknownForNothing) {
  EXPECT_TRUE(std::isnan(geometric_mean({})));
  EXPECT_DOUBLE_EQ(geometric_mean(std::vector<double>{2, 8}), 4);
}

TEST(SummariseCases, BracketsTheGeometricMeanAndRepeats) {
  std::vector<Measurement> measurements(2);
  measurements[0].samples = pairs_with_ratio(2, 27, 0.02, 1);
  measurements[1].samples = pairs_with_ratio(8, 27, 0.02, 2);
  const GeomeanSummary first = summarise_cases(measurements, 0.99, 42);
  EXPECT_NEAR(first.speedup, 4, 0.1);
  EXPECT_LT(first.low, first.speedup);
  EXPECT_GT(first.high, first.speedup);
  EXPECT_EQ(first.low, summarise_cases(measurements, 0.99, 42).low);
}

TEST(NoiseFloor, IsTheLargestOfItsTerms) {
  EXPECT_DOUBLE_EQ(noise_floor(0, 0, 1e6), 0.005);
  EXPECT_DOUBLE_EQ(noise_floor(-0.02, 0, 1e6), 0.04);
  EXPECT_DOUBLE_EQ(noise_floor(0, 10'000, 1e6), 0.02);
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

TEST(Statistics, pairs_are_skipped_only_when_every_one_is_clear_the_same_way) {
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

}  // namespace
}  // namespace kbeam
