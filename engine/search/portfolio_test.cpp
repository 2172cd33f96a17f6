#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "search/search.h"

namespace kbeam {
namespace {

constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();

class Portfolio : public ::testing::Test {
 protected:
  // Adds a candidate and makes it the champion of a case at this axis value.
  void champion(const std::string& source, const std::string& knob, std::int64_t axis_value,
                double speedup = 2) {
    Candidate candidate;
    candidate.idea_id = "idea of " + source;
    candidate.rows.push_back(
        {.source = source, .source_name = source + ".cpp", .knobs = {{"kA", knob}}});
    candidate.id = candidate_id(candidate);
    candidates_[candidate.id] = candidate;
    const std::string case_name = fmt::format("{}{}@{}", source, knob, axis_value);
    regimes_.push_back({case_name, axis_value});
    champions_.push_back({case_name, candidate.id, source, speedup, speedup, speedup, 1});
  }

  Candidate assemble() const { return assemble_portfolio(champions_, regimes_, candidates_); }

  std::map<std::string, Candidate> candidates_;
  std::vector<RegimePoint> regimes_;
  std::vector<Champion> champions_;
};

TEST_F(Portfolio, RowsMeetAtTheGeometricMidpoint) {
  champion("c", "1", 512);  // out of order on purpose
  champion("a", "1", 16);
  champion("b", "1", 64);
  const Candidate portfolio = assemble();
  EXPECT_EQ(portfolio.family, "portfolio");
  EXPECT_EQ(portfolio.id, candidate_id(portfolio));
  ASSERT_EQ(portfolio.rows.size(), 3u);
  EXPECT_EQ(portfolio.rows[0].source, "a");
  EXPECT_EQ(portfolio.rows[0].axis_least, 0);
  EXPECT_EQ(portfolio.rows[0].axis_most, 32);
  EXPECT_EQ(portfolio.rows[1].axis_least, 33);
  EXPECT_EQ(portfolio.rows[1].axis_most, 181);  // sqrt(64 * 512) = 181.02
  EXPECT_EQ(portfolio.rows[2].axis_least, 182);
  EXPECT_EQ(portfolio.rows[2].axis_most, kNoEnd);
  EXPECT_EQ(portfolio.row_for(181).source, "b");
  EXPECT_EQ(portfolio.row_for(100000).source, "c");
}

TEST_F(Portfolio, NeighbouringRowsOfOneSettingMerge) {
  champion("a", "1", 16);
  champion("a", "1", 32);
  champion("a", "2", 64);
  champion("a", "1", 128);
  const Candidate portfolio = assemble();
  ASSERT_EQ(portfolio.rows.size(), 3u);
  EXPECT_EQ(portfolio.rows[0].axis_most, 45);
  EXPECT_EQ(portfolio.rows[1].axis_least, 46);
  EXPECT_EQ(portfolio.rows[1].knobs.at("kA"), "2");
  EXPECT_EQ(portfolio.rows[2].axis_least, 91);
}

TEST_F(Portfolio, OneWinnerEverywhereIsThePlainCandidate) {
  champion("a", "1", 16);
  champion("a", "1", 512);
  const Candidate portfolio = assemble();
  ASSERT_EQ(portfolio.rows.size(), 1u);
  EXPECT_EQ(portfolio.rows[0].axis_least, 0);
  EXPECT_EQ(portfolio.rows[0].axis_most, kNoEnd);
  EXPECT_TRUE(candidates_.contains(portfolio.id));
}

TEST_F(Portfolio, EveryAxisValueHasExactlyOneRow) {
  for (const std::int64_t value : {1, 2, 3, 7, 8, 1000, 1001})
    champion(fmt::format("s{}", value), "1", value);
  const Candidate portfolio = assemble();
  ASSERT_EQ(portfolio.rows.size(), 7u);
  for (std::size_t i = 1; i < 7; ++i)
    EXPECT_EQ(portfolio.rows[i].axis_least, portfolio.rows[i - 1].axis_most + 1);
  for (const RegimePoint& regime : regimes_)
    EXPECT_EQ(portfolio.row_for(regime.axis_value).source, fmt::format("s{}", regime.axis_value));
}

TEST_F(Portfolio, HugeAxisValuesDoNotOverflow) {
  champion("a", "1", kNoEnd / 4);
  champion("b", "1", kNoEnd - 1);
  const Candidate portfolio = assemble();
  ASSERT_EQ(portfolio.rows.size(), 2u);
  EXPECT_NEAR(static_cast<double>(portfolio.rows[0].axis_most), static_cast<double>(kNoEnd) / 2,
              1e10);
}

TEST_F(Portfolio, TwoRegimesAtOneValueKeepTheFasterChampion) {
  champion("a", "1", 16, 3.0);
  champion("b", "1", 16, 4.0);
  champion("c", "1", 64);
  const Candidate portfolio = assemble();
  ASSERT_EQ(portfolio.rows.size(), 2u);
  EXPECT_EQ(portfolio.rows[0].source, "b");
}

TEST_F(Portfolio, RegimesWithoutAChampionAreServedByTheirNeighbours) {
  champion("a", "1", 16);
  regimes_.push_back({"unclaimed", 64});
  champion("b", "1", 256);
  const Candidate portfolio = assemble();
  ASSERT_EQ(portfolio.rows.size(), 2u);
  EXPECT_EQ(portfolio.rows[0].axis_most, 64);
  EXPECT_TRUE(assemble_portfolio({}, regimes_, {}).rows.empty());
}

}  // namespace
}  // namespace kbeam
