// Descent, gains and changes are what the candidates and the ladder say, for every kind of parent.
#include "report/ancestry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/facts.h"
#include "report/synthetic_campaign.h"

namespace kbeam {
namespace {

using testing::ElementsAre;

Candidate plain(const std::string& id, const std::string& source, const std::string& parent = "") {
  Candidate candidate{.id = id, .family = "f", .parent = parent, .origin = "builtin/random"};
  candidate.rows = {{.source = source, .source_name = "f.cpp", .knobs = {{"k", id}}}};
  return candidate;
}

Evaluation attempt_of(const std::string& candidate_id) {
  return {.candidate_id = candidate_id, .verdict = Verdict::accepted};
}

// a (twice) -> b -> portfolio, beside c, which led nowhere.
ReportInput small_campaign() {
  ReportInput input;
  input.candidates = {plain("a", "one"), plain("b", "one more", "a"), plain("c", "other", "a")};
  Candidate portfolio{.id = "p", .family = "portfolio"};
  portfolio.rows = {input.candidates[1].rows[0], input.candidates[1].rows[0]};
  portfolio.rows[1].axis_least = 33;
  input.candidates.push_back(portfolio);
  for (const char* id : {"a", "a", "b", "c", "p"}) input.evaluations.push_back(attempt_of(id));
  input.summary = {{"winner", {{"candidate_id", "p"}}}};
  return input;
}

TEST(Ancestry, LeadsFromThePortfolioBackToItsFirstAncestor) {
  const ReportInput input = small_campaign();
  const ReportFacts facts = gather_facts(input);
  ASSERT_EQ(facts.attempts.size(), 5u);
  EXPECT_THAT(facts.attempts[0].parents, ElementsAre());
  EXPECT_THAT(facts.attempts[2].parents, ElementsAre(1));
  EXPECT_THAT(facts.attempts[4].parents, ElementsAre(3));
  std::vector<bool> line, first;
  for (const AttemptFacts& attempt : facts.attempts) {
    line.push_back(attempt.leads_to_winner);
    first.push_back(attempt.is_first);
  }
  EXPECT_THAT(line, ElementsAre(true, false, true, false, true));
  EXPECT_THAT(first, ElementsAre(true, false, true, true, true));
}

TEST(Ancestry, TwoSourcesOfOneFileNameAreTwoSketches) {
  const ReportInput input = small_campaign();
  const ReportFacts facts = gather_facts(input);
  ASSERT_EQ(facts.sketches.size(), 3u);
  EXPECT_EQ(facts.sketches[1].name, "f.cpp (2)");
  EXPECT_EQ(facts.attempts[1].sketch, 0);
  EXPECT_EQ(facts.attempts[4].sketch, -1);
}

TEST(Ancestry, ParentsThatAreUnknownOrOfACircleDoNoHarm) {
  ReportInput input = small_campaign();
  input.candidates[0].parent = "b";
  input.candidates[2].parent = "gone";
  const ReportFacts facts = gather_facts(input);
  EXPECT_THAT(facts.attempts[0].parents, ElementsAre(3));
  EXPECT_THAT(facts.attempts[3].parents, ElementsAre());
}

TEST(Gains, MultiplyToTheWholeLadderWhicheverWayTheyAreGrouped) {
  const ReportInput input = make_synthetic_campaign(300, 5);
  const ReportFacts facts = gather_facts(input);
  ASSERT_FALSE(facts.ladder.empty());
  for (const std::vector<GainFacts>* gains : {&facts.category_gains, &facts.origin_gains}) {
    double product = 1;
    int steps = 0, evaluations = 0;
    for (const GainFacts& gain : *gains) {
      product *= gain.factor;
      steps += gain.steps;
      evaluations += gain.evaluations;
    }
    EXPECT_NEAR(product, facts.ladder.back().geomean, 1e-9);
    EXPECT_EQ(steps, static_cast<int>(input.ladder.size()));
    EXPECT_EQ(evaluations, 299);  // the portfolio's promotion is nobody's
  }
}

TEST(Step, IsComparedWithItsParentElseWithTheFirstOfItsSource) {
  ReportInput input = small_campaign();
  input.candidates.push_back(plain("d", "one"));
  EXPECT_EQ(find_step_origin(input, "b").before->id, "a");
  EXPECT_TRUE(find_step_origin(input, "b").is_parent);
  EXPECT_EQ(find_step_origin(input, "d").before->id, "a");
  EXPECT_FALSE(find_step_origin(input, "d").is_parent);
  EXPECT_EQ(find_step_origin(input, "a").before, nullptr);
  EXPECT_EQ(find_step_origin(input, "unheard of").candidate, nullptr);
}

TEST(Step, SaysWhichKnobsChanged) {
  EXPECT_EQ(describe_knob_changes({{"a", "1"}, {"b", "2"}}, {{"a", "1"}, {"b", "3"}}), "b 2 → 3");
  EXPECT_EQ(describe_knob_changes({{"a", "1"}}, {{"c", "4"}}), "a 1 → default, c default → 4");
  EXPECT_EQ(describe_knob_changes({{"a", "1"}}, {{"a", "1"}}), "");
}

}  // namespace
}  // namespace kbeam
