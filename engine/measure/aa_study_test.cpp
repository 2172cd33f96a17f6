// Traces with a known truth, cut into comparisons.
#include "measure/aa_study.h"

#include <gtest/gtest.h>
#include <kbeam/random.h>

namespace kbeam {
namespace {

// `ratio` is how much slower the reference is; the noise is a few per cent, the same on both sides.
PairedSamples make_trace(int processes, int pairs, double ratio) {
  Random random(7);
  PairedSamples trace;
  const auto noisy = [&random](double time_ns) {
    return time_ns * (1 + 0.02 * (static_cast<double>(random.below(1000)) / 1000 - 0.5));
  };
  for (int process = 0; process < processes; ++process)
    for (int pair = 0; pair < pairs; ++pair) {
      trace.candidate_ns.push_back(noisy(1e6));
      trace.reference_ns.push_back(noisy(1e6 * ratio));
      trace.candidate_first.push_back(pair % 2 == 0 ? 1 : 0);
      trace.process.push_back(process);
    }
  return trace;
}

TEST(AaStudy, UsesEveryPairOnceInComparisonsOfThreeProcesses) {
  const AaStudy study = study_identical_kernels(make_trace(6, 100, 1), {.control_pairs = 0});
  EXPECT_EQ(study.comparisons.size(), 2u * 3u);  // 3 of 31 fit into 100; two groups of processes
  for (const PairedSummary& summary : study.comparisons) EXPECT_EQ(summary.pairs, 93);
}

TEST(AaStudy, CallsIdenticalKernelsTheSameAndADifferentOneFaster) {
  const AaStudy same = study_identical_kernels(make_trace(3, 39 * 20, 1), {});
  EXPECT_EQ(same.comparisons.size(), 20u);
  EXPECT_EQ(same.count(Comparison::faster), 0u);
  EXPECT_EQ(same.count(Comparison::slower), 0u);
  // The control sees the same difference, so it widens the floor to twice 5 %: no verdict. Without
  // a control, it is one.
  const AaStudy other = study_identical_kernels(make_trace(3, 31 * 20, 1.05), {.control_pairs = 0});
  EXPECT_EQ(other.count(Comparison::faster), 20u);
  const AaStudy widened = study_identical_kernels(make_trace(3, 39 * 20, 1.05), {});
  EXPECT_EQ(widened.count(Comparison::faster), 0u);
}

TEST(AaStudy, ATraceThatIsTooShortGivesNoComparison) {
  EXPECT_TRUE(study_identical_kernels(make_trace(3, 38, 1), {}).comparisons.empty());
  EXPECT_TRUE(study_identical_kernels(make_trace(2, 100, 1), {}).comparisons.empty());
}

}  // namespace
}  // namespace kbeam
