// Traces with a known truth, replayed through the decision.
#include "measure/aa_study.h"

#include <gtest/gtest.h>
#include <kbeam/random.h>

#include <array>

namespace kbeam {
namespace {

struct Machine {
  int processes = 3;
  int pairs = 100;      // a process
  double ratio = 1;     // how much slower the reference is
  double noise = 0.02;  // whole width of a uniform distribution, on each side
};

PairedSamples make_trace(const Machine& machine) {
  Random random(7);
  PairedSamples trace;
  const auto noisy = [&](double time_ns) {
    return time_ns * (1 + machine.noise * (static_cast<double>(random.below(1000)) / 1000 - 0.5));
  };
  for (int process = 0; process < machine.processes; ++process)
    for (int pair = 0; pair < machine.pairs; ++pair) {
      trace.candidate_ns.push_back(noisy(1e6));
      trace.reference_ns.push_back(noisy(1e6 * machine.ratio));
      trace.candidate_first.push_back(pair % 2 == 0 ? 1 : 0);
      trace.process.push_back(process);
    }
  return trace;
}

AaRequest fixed_request(int control_pairs) {
  AaRequest request;
  request.rule = {.name = "fixed", .pairs_per_process = 31, .processes = 3};
  request.control = {.name = "a/a", .pairs_per_process = control_pairs, .processes = 1};
  return request;
}

TEST(AaStudy, UsesEveryPairOnceInComparisonsOfThreeProcesses) {
  const PairedSamples trace = make_trace({.processes = 6, .pairs = 100});
  const AaStudy study = study_identical_kernels(trace, fixed_request(0));
  // 3 pieces of 31 pairs fit into each of 6 processes, three pieces make a comparison.
  EXPECT_EQ(study.comparisons.size(), 6u);
  for (const PairedSummary& summary : study.comparisons) EXPECT_EQ(summary.pairs, 93);
}

TEST(AaStudy, CallsIdenticalKernelsTheSameAndADifferentOneFaster) {
  const PairedSamples identical = make_trace({.processes = 600, .pairs = 11});
  const AaStudy same = study_identical_kernels(identical, {});
  EXPECT_GE(same.comparisons.size(), 40u);
  EXPECT_EQ(same.count(Comparison::same), same.comparisons.size());
  // The control sees the same difference, so it widens the floor beyond 5 %: no verdict. Without a
  // control, it is one.
  const PairedSamples different = make_trace({.processes = 600, .pairs = 11, .ratio = 1.05});
  AaRequest blind;
  blind.control.looks.clear();
  blind.control.processes = 0;
  const AaStudy other = study_identical_kernels(different, blind);
  EXPECT_EQ(other.count(Comparison::faster), other.comparisons.size());
  EXPECT_EQ(study_identical_kernels(different, {}).count(Comparison::faster), 0u);
}

TEST(AaStudy, FindsAGainThatIsPutIn) {
  const PairedSamples trace = make_trace({.processes = 600, .pairs = 11});
  const AaStudy study = study_identical_kernels(trace, {.gain = 0.05});
  EXPECT_EQ(study.count(Comparison::faster), study.comparisons.size());
}

TEST(AaStudy, ATraceThatIsTooShortGivesNoComparison) {
  EXPECT_TRUE(
      study_identical_kernels(make_trace({.processes = 11, .pairs = 11}), {}).comparisons.empty());
  EXPECT_TRUE(
      study_identical_kernels(make_trace({.processes = 600, .pairs = 9}), {}).comparisons.empty());
}

TEST(AaStudy, PowerNeedsMorePairsForASmallerGainAndStaysAmbiguousForNone) {
  const PairedSamples trace = make_trace({.processes = 400, .pairs = 11, .noise = 0.08});
  const std::vector<PowerPoint> points = study_power(trace, std::array{0.001, 0.02, 0.08});
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].pairs, 0);
  EXPECT_GT(points[1].pairs, points[2].pairs);
  EXPECT_GT(points[2].pairs, 0);
  EXPECT_EQ(points[0].found_by_rule, 0);
  EXPECT_GT(points[2].found_by_rule, 0.9);
}

TEST(AaStudy, OnAClockWithQuartilesOnePercentApartAGainOfTwoIsFoundWithin93Pairs) {
  EXPECT_GE(simulate_power({}), 0.95);
  EXPECT_LT(simulate_power({.gain = 0, .trials = 200}), 0.01);
}

}  // namespace
}  // namespace kbeam
