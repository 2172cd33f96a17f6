#include "loop/challenges.h"

#include <gtest/gtest.h>

namespace kbeam {
namespace {

Measurement measured(const std::string& case_name, double speedup, Comparison comparison) {
  Measurement measurement{.case_name = case_name};
  measurement.summary = {
      .speedup = speedup, .low = speedup * 0.9, .high = speedup * 1.1, .comparison = comparison};
  return measurement;
}

TEST(Challenges, EachCaseIsSettledByItsOwnMeasurement) {
  const Candidate candidate{.id = "c2", .family = "rows"};
  Evaluation confirmation{.id = "e7", .verdict = Verdict::accepted};
  confirmation.measurements = {measured("n16", 1.5, Comparison::faster),
                               measured("n32", 0.9, Comparison::slower)};
  const std::vector<Settlement> settled =
      settle_cases(candidate, {{.name = "n16"}, {.name = "n32"}, {.name = "n64"}}, confirmation,
                   {{.case_name = "n16", .candidate_id = "c1", .speedup = 2, .version = 3}});
  ASSERT_EQ(settled.size(), 3u);
  EXPECT_TRUE(settled[0].crowned);
  EXPECT_DOUBLE_EQ(settled[0].champion.speedup, 3.0) << "against the baseline";
  EXPECT_DOUBLE_EQ(settled[0].champion.low, 2.7);
  EXPECT_EQ(settled[0].champion.version, 4);
  EXPECT_EQ(settled[0].champion.candidate_id, "c2");
  EXPECT_FALSE(settled[1].crowned);
  EXPECT_NE(settled[1].why.find("slower"), std::string::npos);
  EXPECT_FALSE(settled[1].contender) << "is slower";
  EXPECT_FALSE(settled[2].crowned) << "was not measured";
}

TEST(Challenges, WhoIsNeitherFasterNorSlowerRemainsAContender) {
  Evaluation confirmation{.id = "e7", .verdict = Verdict::accepted};
  confirmation.measurements = {measured("n16", 1.04, Comparison::ambiguous),
                               measured("n32", 1.04, Comparison::ambiguous)};
  const std::vector<Settlement> settled =
      settle_cases({.id = "c2"}, {{.name = "n16"}, {.name = "n32"}}, confirmation,
                   {{.case_name = "n16", .candidate_id = "c1"}});
  ASSERT_TRUE(settled[0].contender);
  EXPECT_FALSE(settled[0].crowned);
  EXPECT_EQ(settled[0].contender->against, "c1");
  EXPECT_DOUBLE_EQ(settled[0].contender->lean(), 1.04 * 1.04 * 0.9);
  EXPECT_FALSE(settled[1].contender) << "nobody leads there but the baseline";
}

TEST(Challenges, AnEngineFailureSettlesNothing) {
  EXPECT_TRUE(settle_cases({.id = "c"}, {{.name = "n16"}}, {.verdict = Verdict::engine_failed}, {})
                  .empty());
}

}  // namespace
}  // namespace kbeam
