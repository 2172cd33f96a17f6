#include "loop/goal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kbeam {
namespace {

const std::vector<std::string> kCases{"n64", "n512"};

Goal parsed(const std::string& text) {
  const Result<Goal> goal = Goal::parse(text, kCases, "lapack");
  EXPECT_TRUE(goal.ok()) << (goal.ok() ? "" : goal.error().text());
  return goal.ok() ? goal.value() : Goal();
}

std::string refusal(const std::string& text) {
  const Result<Goal> goal = Goal::parse(text, kCases, "lapack");
  return goal.ok() ? "accepted" : goal.error().text();
}

// Speedups 4 and 9: geometric mean 6; times 1 ms and 4 ms: geometric mean 2 ms.
const GoalFigures kFigures{{{"n64", 1e6}, {"n512", 4e6}}, {{"n64", 4e6}, {"n512", 36e6}}};

TEST(Goal, ComparesTheGeometricMeanSpeedup) {
  EXPECT_TRUE(parsed("speedup >= 5.99").met_by(kFigures));
  EXPECT_FALSE(parsed("speedup >= 6.01").met_by(kFigures));
  EXPECT_TRUE(parsed("speedup(lapack) > 5").met_by(kFigures));
}

TEST(Goal, ComparesTimesInEveryUnit) {
  for (const char* text :
       {"geomean <= 2000001ns", "geomean <= 2001us", "geomean <= 2.1ms", "geomean <= 0.1s"})
    EXPECT_TRUE(parsed(text).met_by(kFigures)) << text;
  EXPECT_FALSE(parsed("geomean < 1.9 ms").met_by(kFigures));
  EXPECT_TRUE(parsed("case n512 <= 4ms").met_by(kFigures));
  EXPECT_FALSE(parsed("case n512 < 4ms").met_by(kFigures));
}

TEST(Goal, NumbersAreReadWholeOrRefused) {
  for (const std::string& number :
       {std::string("."), std::string("1.2.3"), std::string("1."), std::string(400, '9')})
    for (const std::string before : {"speedup >= ", "case n64 < best * "})
      EXPECT_THAT(refusal(before + number), testing::HasSubstr("read the goal")) << number;
  EXPECT_THAT(refusal("speedup >= 1" + std::string(200'000, ' ')), testing::HasSubstr("bytes"));
}

TEST(Goal, KnowsTheIncumbentAtTheStart) {
  EXPECT_TRUE(parsed("case n512 < best * 0.2").met_by(kFigures));
  EXPECT_FALSE(parsed("case n512 < best * 0.1").met_by(kFigures));
  EXPECT_TRUE(parsed("geomean < best").met_by(kFigures));
}

TEST(Goal, AndBindsTighterThanOr) {
  EXPECT_TRUE(parsed("speedup >= 100 and geomean < 1ns or case n64 <= 1ms").met_by(kFigures));
  EXPECT_FALSE(parsed("speedup >= 1 and geomean < 1ns or case n64 < 1ms").met_by(kFigures));
}

TEST(Goal, SaysOnHowManyCasesTheWinnerMayBeSlower) {
  EXPECT_EQ(parsed("speedup >= 2").slower_allowed(), 0);
  EXPECT_EQ(parsed("speedup >= 2 and slower <= 1").slower_allowed(), 1);
  EXPECT_EQ(parsed("").slower_allowed(), 0);
  EXPECT_TRUE(parsed("slower <= 0").met_by(kFigures));
  const GoalFigures one_slower{{{"n64", 5e6}, {"n512", 4e6}}, kFigures.baseline_ns};
  EXPECT_FALSE(parsed("slower <= 0").met_by(one_slower));
  EXPECT_TRUE(parsed("slower <= 1").met_by(one_slower));
  EXPECT_THAT(refusal("slower <= 1ms"), testing::HasSubstr("slower has no unit"));
  EXPECT_THAT(refusal("slower >= 1"), testing::HasSubstr("slower <= N"));
}

TEST(Goal, ComparesTheShareOfARoof) {
  GoalFigures figures = kFigures;
  EXPECT_FALSE(parsed("roofline(n512) >= 0").met_by(figures)) << "no roof was measured";
  figures.roof_ns = {{"n512", 2e6}};
  EXPECT_TRUE(parsed("roofline(n512) >= 0.5").met_by(figures));
  EXPECT_FALSE(parsed("roofline( n512 ) > 0.5").met_by(figures));
  EXPECT_EQ(parsed("roofline(n512) >= 0.5 or speedup >= 2").roofs_wanted(),
            std::vector<std::string>{"n512"});
  EXPECT_THAT(refusal("roofline(n52) >= 0.5"), testing::HasSubstr("did you mean n512?"));
  EXPECT_THAT(refusal("roofline(n512) >= 5ms"), testing::HasSubstr("has no unit"));
  EXPECT_THAT(refusal("roofline >= 0.5"), testing::HasSubstr("no comparison"));
}

TEST(Goal, IsNeverMetByMissingFigures) {
  EXPECT_FALSE(parsed("case n512 <= 4s").met_by({}));
  EXPECT_FALSE(parsed("speedup >= 0").met_by({{{"n64", 1}}, kFigures.baseline_ns}));
  EXPECT_FALSE(parsed("").met_by(kFigures));
}

TEST(Goal, SaysWhatItDoesNotUnderstand) {
  EXPECT_THAT(refusal("speed >= 2"), testing::HasSubstr("no comparison that kbeam knows"));
  EXPECT_THAT(refusal("case n52 < 1ms"), testing::HasSubstr("did you mean n512?"));
  EXPECT_THAT(refusal("geomean <= 3"), testing::HasSubstr("a time needs ns, us, ms or s"));
  EXPECT_THAT(refusal("speedup >= 3ms"), testing::HasSubstr("speedup has no unit"));
  EXPECT_THAT(refusal("speedup(cusolver) >= 3"),
              testing::HasSubstr("baseline of this problem is lapack"));
  EXPECT_THAT(refusal("speedup >= 3 and"), testing::HasSubstr("no comparison"));
}

}  // namespace
}  // namespace kbeam
