#include "session/pools.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace kbeam {
namespace {

Case make_case(const std::string& name, Pool pool) {
  return {.name = name, .family = "dense", .pool = pool};
}

const std::vector<Case> kCases = {
    make_case("a", Pool::public_pool), make_case("b", Pool::public_pool),
    make_case("hidden_1", Pool::private_pool), make_case("hidden_2", Pool::private_pool),
    make_case("drawn", Pool::sealed_pool)};

CheckReport report(const std::string& name, Verdict verdict = Verdict::accepted) {
  return {.case_name = name,
          .verdict = verdict,
          .grade = "fp32",
          .sentence = verdict == Verdict::accepted ? "" : "element 3 is off",
          .figures = {{.name = "element_error", .value = 1, .limit = 2}},
          .outputs_checked = 4};
}

Measurement measured(const std::string& name, double speedup) {
  Measurement measurement{.case_name = name};
  measurement.summary.speedup = speedup;
  return measurement;
}

TEST(TallyPools, CountsEachPoolAndComparesWhatWasSeenWithWhatWasNot) {
  Evaluation evaluation{.verdict = Verdict::accepted};
  for (const Case& the_case : kCases) evaluation.checks.push_back(report(the_case.name));
  evaluation.measurements = {measured("a", 2), measured("b", 8)};
  evaluation.held_out = {measured("hidden_1", 2), measured("drawn", 2)};
  tally_pools(evaluation, kCases);
  EXPECT_EQ(evaluation.public_pool->cases, 2);
  EXPECT_EQ(evaluation.public_pool->passed, 2);
  EXPECT_NEAR(*evaluation.public_pool->speedup, 4, 1e-12);
  EXPECT_EQ(evaluation.private_pool->passed, 2);
  EXPECT_EQ(evaluation.sealed_pool->cases, 1);
  EXPECT_NEAR(*evaluation.sealed_pool->speedup, 2, 1e-12);
  EXPECT_NEAR(*evaluation.generality_gap, 1, 1e-12);
  EXPECT_TRUE(evaluation.failed_case.empty());
}

TEST(TallyPools, WithoutHeldOutTimesThereIsNoGap) {
  Evaluation evaluation{.verdict = Verdict::accepted};
  evaluation.measurements = {measured("a", 2)};
  tally_pools(evaluation, kCases);
  EXPECT_FALSE(evaluation.private_pool->speedup);
  EXPECT_FALSE(evaluation.generality_gap);
}

TEST(TallyPools, NamesTheFirstCaseThatDidNotPassForTheLoop) {
  Evaluation evaluation{.verdict = Verdict::crashed};
  evaluation.checks = {report("a")};
  tally_pools(evaluation, kCases);
  EXPECT_EQ(evaluation.failed_case, "b");
  EXPECT_EQ(evaluation.public_pool->passed, 1);
}

TEST(SilencePrivateCases, TellsPassOrFailAndNothingElse) {
  Evaluation evaluation{.verdict = Verdict::failed_private};
  evaluation.checks = {report("a"), report("b"), report("hidden_1"),
                       report("hidden_2", Verdict::wrong_value)};
  tally_pools(evaluation, kCases);
  EXPECT_EQ(evaluation.private_pool->passed, 0) << "no count of how far it came";
  silence_private_cases(evaluation, kCases);
  ASSERT_EQ(evaluation.checks.size(), 3U);
  const CheckReport& hidden = evaluation.checks.back();
  EXPECT_EQ(hidden.case_name, "private");
  EXPECT_EQ(hidden.verdict, Verdict::failed_private);
  EXPECT_TRUE(hidden.sentence.empty());
  EXPECT_TRUE(hidden.figures.empty());
  EXPECT_EQ(hidden.outputs_checked, 0);
}

TEST(SilencePrivateCases, AFailureThatCameBeforeItsReportLooksTheSame) {
  Evaluation crashed{.verdict = Verdict::failed_private};
  crashed.checks = {report("a"), report("b"), report("hidden_1")};
  Evaluation wrong = crashed;
  wrong.checks.push_back(report("hidden_2", Verdict::wrong_value));
  for (Evaluation* one : {&crashed, &wrong}) {
    tally_pools(*one, kCases);
    silence_private_cases(*one, kCases);
  }
  EXPECT_EQ(crashed.checks.back().verdict, wrong.checks.back().verdict);
  EXPECT_EQ(crashed.checks.back().outputs_checked, wrong.checks.back().outputs_checked);
}

TEST(SilencePrivateCases, AnEvaluationWithoutThemStaysAsItIs) {
  Evaluation evaluation{.verdict = Verdict::accepted};
  evaluation.checks = {report("a")};
  silence_private_cases(evaluation, {kCases[0]});
  EXPECT_EQ(evaluation.checks.size(), 1U);
}

}  // namespace
}  // namespace kbeam
