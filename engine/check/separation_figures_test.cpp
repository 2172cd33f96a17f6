// Separation rows from figures: who counts as a cheat where, what is refused, what has drifted.
#include "check/separation_figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace kbeam {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const KnownCandidate kFloat{"known_good/float", true, {}};
const KnownCandidate kDouble{"known_good/double", true, {}};
const KnownCandidate kBf16{"known_wrong/bf16", false, {{"error", {}}}};
const KnownCandidate kOnePass{"known_wrong/one_pass", false, {{"error", {"offset"}}}};

Case make_case(const std::string& name, const std::string& family, bool timed = false) {
  Case made;
  made.name = name;
  made.family = family;
  made.timed = timed;
  return made;
}

const std::vector<Case> kCases = {make_case("big", "normal", true), make_case("small", "normal"),
                                  make_case("far", "offset")};

Sighting seen(const KnownCandidate& candidate, const Case& where, double value, double limit = 16) {
  return {&candidate, where.name, where.family, {"error", value, limit, "u", "row 0"}};
}

std::vector<Sighting> plain_sightings() {
  return {seen(kFloat, kCases[0], 3),     seen(kFloat, kCases[0], 4),   seen(kDouble, kCases[0], 1),
          seen(kFloat, kCases[1], 2),     seen(kFloat, kCases[2], 5),   seen(kBf16, kCases[0], 900),
          seen(kBf16, kCases[0], 800),    seen(kBf16, kCases[1], 700),  seen(kBf16, kCases[2], 600),
          seen(kOnePass, kCases[0], 4.5), seen(kOnePass, kCases[2], 90)};
}

TEST(Claims, NameChecksAndFamilies) {
  const auto claims = read_claims(
      "// expect: wrong_value\n// caught by: error, sum on normal, offset; quick\n"
      "// caught by: rows except normal\nint x;\n",
      "f");
  ASSERT_TRUE(claims.ok());
  ASSERT_EQ(claims->size(), 4u);
  EXPECT_EQ((*claims)[0].check, "error");
  EXPECT_EQ((*claims)[1].check, "sum");
  EXPECT_THAT((*claims)[1].families, ElementsAre("normal", "offset"));
  EXPECT_TRUE((*claims)[2].covers("anything"));
  EXPECT_FALSE((*claims)[0].covers("anything"));
  EXPECT_TRUE((*claims)[3].covers("anything"));
  EXPECT_FALSE((*claims)[3].covers("normal"));
}

TEST(Claims, StandAboveTheCodeAndMustMakeSense) {
  EXPECT_THAT(*read_claims("// expect: x\nint x;\n// caught by: error\n", "f"), IsEmpty());
  EXPECT_FALSE(read_claims("// caught by: the error check\n", "f").ok());
  EXPECT_FALSE(read_claims("// caught by: on normal\n", "f").ok());
}

TEST(Separate, TakesTheWorstHonestAndTheCheapestCheat) {
  const std::vector<SeparationRow> rows = separate(plain_sightings(), kCases);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].case_name, "big");
  EXPECT_EQ(rows[0].honest, 4);
  EXPECT_EQ(rows[0].honest_by, "known_good/float");
  EXPECT_EQ(rows[0].cheat, 800);
  EXPECT_EQ(rows[2].cheat, 90);
  EXPECT_EQ(rows[2].cheat_by, "known_wrong/one_pass");
}

// one_pass is slightly worse than honest ones on "big" and claims nothing there.
TEST(Separate, CountsACheatOnlyWhereItClaimsAndHarms) {
  std::vector<Sighting> sightings = plain_sightings();
  EXPECT_EQ(separate(sightings, kCases)[0].cheat_by, "known_wrong/bf16");
  sightings = {seen(kFloat, kCases[1], 2), seen(kBf16, kCases[1], 2)};
  EXPECT_FALSE(separate(sightings, kCases)[0].has_cheat());
}

TEST(Separate, ComparesByLimitWhereLimitsDiffer) {
  const std::vector<Sighting> sightings = {seen(kFloat, kCases[0], 4, 16),
                                           seen(kFloat, kCases[0], 5, 100),
                                           seen(kBf16, kCases[0], 300, 100)};
  const SeparationRow row = separate(sightings, kCases)[0];
  EXPECT_EQ(row.honest, 4);
  EXPECT_EQ(row.cheat, 48);  // three limits of sixteen
}

TEST(Refusals, AreNoneWhenAllIsApart) {
  const auto sightings = plain_sightings();
  EXPECT_THAT(find_refusals(separate(sightings, kCases), {kFloat, kBf16, kOnePass}, sightings),
              IsEmpty());
}

TEST(Refusals, NameTheCaseThatIsTooClose) {
  std::vector<Sighting> sightings = plain_sightings();
  sightings.push_back(seen(kBf16, kCases[1], 19));
  EXPECT_THAT(
      find_refusals(separate(sightings, kCases), {kFloat, kBf16}, sightings),
      ElementsAre(HasSubstr("case small, check error: known_wrong/bf16 has 19 u, only 9.5")));
}

TEST(Refusals, NameAClaimThatCameTrueNowhereAndACheckWithoutACheat) {
  const std::vector<Sighting> sightings = {seen(kFloat, kCases[0], 3), seen(kBf16, kCases[0], 2)};
  EXPECT_THAT(find_refusals(separate(sightings, kCases), {kFloat, kBf16}, sightings),
              ElementsAre(HasSubstr("check error has no cheat"), HasSubstr("no case shows that")));
}

TEST(Drift, AllowsAFactorAndAsksForAllElse) {
  const std::vector<SeparationRow> stored = separate(plain_sightings(), kCases);
  EXPECT_THAT(find_drift(stored, stored), IsEmpty());
  std::vector<SeparationRow> other = stored;
  other[0].honest = 11;
  other[0].cheat = 300;
  other[1].honest = 0.01;  // far below the limit: 2 of 16 may fall to 0.8 of 16, a twentieth
  EXPECT_THAT(find_drift(stored, other), IsEmpty());
  other[0].honest = 13;
  EXPECT_THAT(find_drift(stored, other), ElementsAre(HasSubstr("the worst honest figure was 4")));
  other = stored;
  other[2].cheat = 900;
  other[1].limit = 20;
  EXPECT_THAT(find_drift(stored, other),
              ElementsAre(HasSubstr("limit was 16"), HasSubstr("the cheapest cheat was 90")));
  other = stored;
  other.pop_back();
  EXPECT_THAT(find_drift(stored, other), ElementsAre(HasSubstr("far, check error: stored, but")));
  EXPECT_THAT(find_drift(other, stored), ElementsAre(HasSubstr("far, check error: not stored")));
  other = stored;
  other[1].cheat = std::nan("");
  EXPECT_THAT(find_drift(stored, other), ElementsAre(HasSubstr("cheapest cheat")));
}

TEST(Classes, ShowTheLeastSeparationOfAFamilyAndTimedCasesAlone) {
  const auto classes = worst_of_classes(separate(plain_sightings(), kCases), kCases);
  ASSERT_EQ(classes.size(), 3u);
  EXPECT_EQ(classes[0].name, "big (timed)");
  EXPECT_EQ(classes[1].name, "normal");
  EXPECT_EQ(classes[2].worst.cheat, 90);
}

}  // namespace
}  // namespace kbeam
