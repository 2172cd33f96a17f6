#include "measure/statistics.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/files.h"
#include "measure/pair_trace.h"

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

TEST(SummarisePairs, SaysTheSameOnlyWhereThatMeansSomething) {
  EXPECT_EQ(summarise_pairs(pairs_with_ratio(1, 31, 0.01, 3), 0.99, kWidestSame).comparison,
            Comparison::same);
  EXPECT_EQ(summarise_pairs(pairs_with_ratio(1, 31, 0.01, 3), 0.99, 0.5).comparison,
            Comparison::ambiguous);
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

// What fresh processes differ by is worth as many observations as there are processes, however many
// pairs each took.
TEST(SummarisePairs, RarelyCallsIdenticalKernelsFasterWhereProcessesDiffer) {
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal;
  int called = 0;
  constexpr int kTrials = 1000;
  for (int trial = 0; trial < kTrials; ++trial) {
    PairedSamples samples;
    for (int process = 0; process < 6; ++process) {
      const double of_process = 0.02 * normal(random);
      for (int pair = 0; pair < 10; ++pair) {
        samples.candidate_ns.push_back(1e6);
        samples.reference_ns.push_back(1e6 * std::exp(of_process + 0.01 * normal(random)));
        samples.candidate_first.push_back(0);
        samples.process.push_back(process);
      }
    }
    called += summarise_pairs(samples, 0.99, 0).comparison == Comparison::faster ? 1 : 0;
  }
  EXPECT_LE(called, kTrials / 100);
}

TEST(RankingSpeedup, ComparesTheFastestCallsOfEachSide) {
  EXPECT_TRUE(std::isnan(ranking_speedup({})));
  // Three of five pairs disturbed, on either side: the median of the ratios would say 2.94 and 0.5.
  EXPECT_DOUBLE_EQ(ranking_speedup({.candidate_ns = {100, 102, 100, 104, 106},
                                    .reference_ns = {200, 300, 304, 204, 312}}),
                   2.02);
  EXPECT_DOUBLE_EQ(ranking_speedup({.candidate_ns = {100, 400, 100, 400, 400},
                                    .reference_ns = {200, 200, 200, 200, 200}}),
                   2.0);
  EXPECT_DOUBLE_EQ(ranking_speedup({.candidate_ns = {50}, .reference_ns = {100}}), 2.0);
}

// Identical kernels, recorded: how far five pairs say that they differ, as a log-ratio.
TEST(RankingSpeedup, StraysLessThanTheMedianOfRatiosOnRecordedNoise) {
  for (const char* condition : {"idle", "bursty", "compiler"})
    for (const char* the_case : {"batch=64-m=16-n=16", "batch=8-m=32-n=32", "batch=1-m=64-n=64"}) {
      const std::string name = fmt::format("{}_batched_qr_{}.trace", condition, the_case);
      const PairedSamples samples =
          decode_trace(
              read_file(std::filesystem::path(KBEAM_SOURCE_DIR) / "tests/study" / name).value(),
              name)
              .value()
              .samples;
      double by_fastest = 0, by_ratios = 0;
      for (std::size_t at = 0; at + 5 <= samples.candidate_ns.size(); at += 5) {
        const auto five = [at](const std::vector<double>& times) {
          const auto from = times.begin() + static_cast<std::ptrdiff_t>(at);
          return std::vector<double>(from, from + 5);
        };
        const PairedSamples few{.candidate_ns = five(samples.candidate_ns),
                                .reference_ns = five(samples.reference_ns)};
        by_fastest += std::pow(std::log(ranking_speedup(few)), 2);
        by_ratios += std::pow(std::log(summarise_pairs(few, 0.99, 0.01).speedup), 2);
      }
      EXPECT_LT(std::sqrt(by_fastest), 0.9 * std::sqrt(by_ratios)) << name;
    }
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
  EXPECT_DOUBLE_EQ(noise_floor(0.02, 0, 1e6), 0.02);
  EXPECT_DOUBLE_EQ(noise_floor(0, 10'000, 1e6), 0.02);
}

TEST(AaNoise, IsTheFartherEndOfTheIntervalOrTheFarthestPairOfAFew) {
  const PairedSamples control = pairs_with_ratio(1.01, 31, 0.01, 4);
  const PairedSummary summary = summarise_pairs(control, 0.99, 0);
  EXPECT_DOUBLE_EQ(aa_noise(control, 0.99),
                   std::max(std::abs(std::log(summary.low)), std::abs(std::log(summary.high))));
  const PairedSamples few{{100, 100, 100}, {100, 110, 99}, {0, 0, 0}, {0, 0, 0}};
  EXPECT_DOUBLE_EQ(aa_noise(few, 0.99), std::log(1.1));
}

TEST(StudentQuantile, AgreesWithTables) {
  EXPECT_NEAR(student_quantile(0.95, 1), 12.706, 1e-3);
  EXPECT_NEAR(student_quantile(0.99, 2), 9.925, 1e-3);
  EXPECT_NEAR(student_quantile(0.99, 5), 4.032, 1e-3);
  EXPECT_NEAR(student_quantile(0.999, 10), 4.587, 1e-3);
  EXPECT_NEAR(student_quantile(0.95, 23), 2.069, 1e-3);
}

}  // namespace
}  // namespace kbeam
