// Comparisons on a simulated clock with a known truth, followed to their end.
#include "measure/comparison_course.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "measure/statistics.h"

namespace kbeam {
namespace {

// One case: how much faster the candidate really is, and how noisy the machine.
struct Truth {
  double speedup = 1;
  double pair_spread = 0.0074;  // standard deviation of the log-ratio: quartiles 1 % apart
  double process_spread = 0;    // of what fresh processes differ by
};

class SimulatedJudge {
 public:
  SimulatedJudge(std::vector<Truth> truths, std::uint64_t seed)
      : truths_(std::move(truths)), random_(seed) {
    for (std::size_t i = 0; i < truths_.size(); ++i)
      measurements_.push_back({.case_name = "case" + std::to_string(i)});
  }

  // Follows the course for one process.
  void run_process(ComparisonCourse& course) {
    for (std::size_t i = 0; i < truths_.size(); ++i)
      if (course.is_open(i)) time_case(truths_[i], course, measurements_[i].samples);
    course.end_process(measurements_);
  }
  const std::vector<Measurement>& follow(ComparisonCourse& course) {
    while (!course.is_over()) run_process(course);
    return measurements_;
  }
  std::vector<Measurement>& measurements() { return measurements_; }

 private:
  double normal(double spread) { return spread * std::normal_distribution<double>()(random_); }

  void time_case(const Truth& truth, const ComparisonCourse& course, PairedSamples& samples) {
    const double of_process = normal(truth.process_spread);
    for (int pair = 0; pair < course.pairs(); ++pair) {
      samples.candidate_ns.push_back(1e6);
      samples.reference_ns.push_back(1e6 * truth.speedup *
                                     std::exp(of_process + normal(truth.pair_spread)));
      samples.candidate_first.push_back(pair % 2);
      samples.process.push_back(course.process());
    }
  }

  std::vector<Truth> truths_;
  std::mt19937_64 random_;
  std::vector<Measurement> measurements_;
};

ComparisonCourse::DeltaFor fixed_delta(double delta) {
  return [delta](const std::string&, double) { return delta; };
}

// What an A/A control of one look saw on this machine.
double control_noise(const Truth& machine, std::uint64_t seed) {
  const StoppingRule rule{.name = "a/a", .looks = {{31, 6}}};
  ComparisonCourse course(rule, 1, fixed_delta(0));
  Truth identical = machine;
  identical.speedup = 1;
  return aa_noise(SimulatedJudge({identical}, seed).follow(course).front().samples, 0.99);
}

TEST(ComparisonCourse, FindsATrueGainOfTwoPercentWithin93PairsWhereQuartilesAreOnePercentApart) {
  constexpr int kTrials = 1000;
  int found = 0;
  for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
    const Truth truth{.speedup = 1.02};
    const double noise = control_noise(truth, 2 * trial);
    ComparisonCourse course(sequential_rule("promote"), 1, [&](const std::string&, double bracket) {
      return noise_floor(noise, 100, bracket);
    });
    const PairedSummary summary =
        SimulatedJudge({truth}, 2 * trial + 1).follow(course).front().summary;
    found += summary.comparison == Comparison::faster && summary.pairs <= 93 ? 1 : 0;
  }
  EXPECT_GE(found, kTrials * 95 / 100);
}

TEST(ComparisonCourse, RarelyCallsIdenticalKernelsFasterHoweverNoisyTheMachine) {
  constexpr int kTrials = 1000;
  for (const Truth machine :
       {Truth{}, Truth{.pair_spread = 0.1}, Truth{.pair_spread = 0.02, .process_spread = 0.02}}) {
    int called = 0;
    for (std::uint64_t trial = 0; trial < kTrials; ++trial) {
      ComparisonCourse course(sequential_rule("promote"), 1, fixed_delta(0.005));
      called += SimulatedJudge({machine}, trial).follow(course).front().summary.comparison ==
                        Comparison::faster
                    ? 1
                    : 0;
    }
    EXPECT_LE(called, 10) << machine.pair_spread << " " << machine.process_spread;
  }
}

TEST(ComparisonCourse, EndsAtTheFirstLookWhereEveryCaseIsDecided) {
  ComparisonCourse course(sequential_rule("promote"), 2, fixed_delta(0.005));
  SimulatedJudge judge({{.speedup = 1.5}, {.speedup = 0.7}}, 1);
  const std::vector<Measurement>& measurements = judge.follow(course);
  EXPECT_EQ(course.process(), 6);
  EXPECT_EQ(measurements[0].summary.comparison, Comparison::faster);
  EXPECT_EQ(measurements[1].summary.comparison, Comparison::slower);
  EXPECT_EQ(measurements[0].stop_reason, "decided at look 1 of 4");
  EXPECT_DOUBLE_EQ(measurements[0].summary.confidence, 1 - 0.01 / 4);
}

TEST(ComparisonCourse, GoesOnOnlyWithTheCasesThatAreOpen) {
  ComparisonCourse course(sequential_rule("promote"), 2, fixed_delta(0.005));
  SimulatedJudge judge({{.speedup = 1.5}, {.speedup = 1.005}}, 2);
  const std::vector<Measurement>& measurements = judge.follow(course);
  EXPECT_EQ(measurements[0].samples.candidate_ns.size(), 31u);
  EXPECT_GT(measurements[1].samples.candidate_ns.size(), 31u);
  EXPECT_EQ(measurements[1].summary.pairs,
            static_cast<int>(measurements[1].samples.candidate_ns.size()));
}

TEST(ComparisonCourse, SaysHowMuchAnotherLookAddsAndEndsWhenThereIsNoTime) {
  ComparisonCourse course(sequential_rule("promote"), 2, fixed_delta(0.005));
  SimulatedJudge judge({{.speedup = 1.5}, {.speedup = 1.005}}, 2);
  EXPECT_FALSE(course.is_at_look());
  for (int process = 0; process < 6; ++process) judge.run_process(course);
  EXPECT_TRUE(course.is_at_look());
  EXPECT_DOUBLE_EQ(course.growth(), 30.0 / 62.0);  // one case is decided
  course.cut_short(judge.measurements(), "no time for another look");
  EXPECT_TRUE(course.is_over());
  EXPECT_EQ(judge.measurements()[0].stop_reason, "decided at look 1 of 4");
  EXPECT_EQ(judge.measurements()[1].stop_reason, "no time for another look");
  EXPECT_EQ(judge.measurements()[1].summary.comparison, Comparison::ambiguous);
}

TEST(ComparisonCourse, AFixedRuleTakesAllItsPairsUnlessItMayEndClear) {
  StoppingRule rule{.name = "fixed", .pairs_per_process = 15, .processes = 2};
  ComparisonCourse whole(rule, 1, fixed_delta(0.005));
  EXPECT_EQ(SimulatedJudge({{.speedup = 3}}, 3).follow(whole).front().summary.pairs, 30);
  rule.clear_ratio = 1.1;
  ComparisonCourse clear(rule, 1, fixed_delta(0.005));
  const Measurement measurement = SimulatedJudge({{.speedup = 3}}, 3).follow(clear).front();
  EXPECT_EQ(measurement.summary.pairs, 15);
  EXPECT_EQ(measurement.summary.comparison, Comparison::faster);
}

}  // namespace
}  // namespace kbeam
