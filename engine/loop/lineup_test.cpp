#include "loop/lineup.h"

#include <gtest/gtest.h>

#include <map>

namespace kbeam {
namespace {

Row row_of(const std::string& source) {
  return {.source = source, .source_name = source + ".cpp"};
}

// Cases n16, n64 and n256; candidates "lanes" and "tiles" beside a baseline of one row.
class LineupTest : public testing::Test {
 protected:
  LineupTest() {
    problem_.regime_axis = "n";
    problem_.targets = {"cpu"};
    for (const auto& [name, n] :
         std::map<std::string, std::int64_t>{{"n16", 16}, {"n64", 64}, {"n256", 256}})
      problem_.cases.push_back(
          {.name = name, .axes = {{"n", n}}, .timed = true, .targets = problem_.targets});
    for (const char* source : {"lanes", "tiles", "strips"}) {
      Candidate candidate{.family = source};
      candidate.rows = {row_of(source)};
      candidate.id = source;
      known_[source] = candidate;
    }
    baseline_.family = "baseline";
    baseline_.rows = {row_of("lapack")};
  }

  FindCandidate find() const {
    return [this](const std::string& id) -> std::optional<Candidate> {
      const auto found = known_.find(id);
      if (found == known_.end()) return std::nullopt;
      return found->second;
    };
  }
  // The source that serves each case.
  static std::string served(const Candidate& portfolio) {
    return portfolio.row_for(16).source + " " + portfolio.row_for(64).source + " " +
           portfolio.row_for(256).source;
  }
  std::string winner(const Standing& standing, const Bans& bans) const {
    const auto lineup = assemble_winner(problem_, standing, bans, find());
    return lineup ? served(lineup->portfolio) : "nobody";
  }

  Problem problem_;
  Candidate baseline_;
  std::map<std::string, Candidate> known_;
};

TEST_F(LineupTest, ScreensArePairedWithChampionsAndElseWithTheBaseline) {
  EXPECT_EQ(served(reference_portfolio(problem_, {}, baseline_, find())), "lapack lapack lapack");
  EXPECT_EQ(served(reference_portfolio(problem_, {{.case_name = "n64", .candidate_id = "tiles"}},
                                       baseline_, find())),
            "lapack tiles lapack");
}

TEST_F(LineupTest, TheLatestChampionGoesIntoThePromotionAndTheBaselineNever) {
  EXPECT_EQ(winner({}, {}), "nobody");
  EXPECT_EQ(winner({.crowned = {{.case_name = "n16", .candidate_id = "lanes"},
                                {.case_name = "n256", .candidate_id = "lanes"},
                                {.case_name = "n256", .candidate_id = "tiles"}}},
                   {}),
            "lanes lanes tiles")
      << "n64 is served by its neighbour";
}

TEST_F(LineupTest, AWrongRowIsBannedWithEveryChampionOfTheSameSourceAndKnobs) {
  known_["twin"] = known_["lanes"];
  known_["tuned"] = known_["lanes"];
  known_["tuned"].rows.front().knobs = {{"kLanes", "16"}};
  const Standing standing{.crowned = {{.case_name = "n16", .candidate_id = "tuned"},
                                      {.case_name = "n16", .candidate_id = "twin"},
                                      {.case_name = "n16", .candidate_id = "lanes"},
                                      {.case_name = "n256", .candidate_id = "tiles"}}};
  Bans bans;
  const Lineup lineup = *assemble_winner(problem_, standing, bans, find());
  Promotion failed;
  failed.failed_at = 20;
  EXPECT_TRUE(ban_what_failed(failed, lineup, standing, find(), bans));
  EXPECT_EQ(bans.candidates, (std::set<std::string>{"twin", "lanes"}));
  const auto next = assemble_winner(problem_, standing, bans, find());
  EXPECT_EQ(next->portfolio.row_for(16).knobs, known_["tuned"].rows.front().knobs);
}

TEST_F(LineupTest, ASlowerRowIsBannedOnItsCaseAlone) {
  const Standing standing{.crowned = {{.case_name = "n16", .candidate_id = "strips"},
                                      {.case_name = "n16", .candidate_id = "lanes"},
                                      {.case_name = "n256", .candidate_id = "lanes"}}};
  Bans bans;
  const Lineup lineup = *assemble_winner(problem_, standing, bans, find());
  Promotion slower;
  slower.slower_cases = {"n16"};
  EXPECT_TRUE(ban_what_failed(slower, lineup, standing, find(), bans));
  EXPECT_TRUE(bans.candidates.empty());
  EXPECT_EQ(winner(standing, bans), "strips strips lanes");
  const Lineup next = *assemble_winner(problem_, standing, bans, find());
  EXPECT_TRUE(ban_what_failed(slower, next, standing, find(), bans));
  EXPECT_EQ(winner(standing, bans), "lanes lanes lanes");
}

TEST_F(LineupTest, WithoutAnybodyToBlameNothingIsBanned) {
  Bans bans;
  EXPECT_FALSE(ban_what_failed({}, {.portfolio = baseline_}, {}, find(), bans));
}

TEST_F(LineupTest, AContenderStandsInWhereItLeansFartherThanItsIntervalReachesBelow) {
  Standing standing{.crowned = {{.case_name = "n16", .candidate_id = "lanes"},
                                {.case_name = "n256", .candidate_id = "lanes"}}};
  const auto contend = [&](const char* id, const char* against, double speedup, double low) {
    standing.contenders = {{"n256", id, against, speedup, low, speedup * speedup / low}};
    return winner(standing, {});
  };
  EXPECT_EQ(contend("tiles", "lanes", 1.04, 0.99), "lanes lanes tiles");
  EXPECT_EQ(contend("tiles", "lanes", 1.02, 0.93), "lanes lanes lanes") << "within the noise";
  EXPECT_EQ(contend("tiles", "strips", 1.04, 0.99), "lanes lanes lanes")
      << "against a champion that is none any more";
  standing.contenders = {{"n256", "tiles", "lanes", 1.04, 0.99, 1.1},
                         {"n256", "strips", "lanes", 1.06, 1.01, 1.1},
                         {"n16", "tiles", "lanes", 1.01, 0.90, 1.1}};
  EXPECT_EQ(winner(standing, {}), "lanes lanes strips") << "the one that leans farthest";
  EXPECT_EQ(assemble_winner(problem_, standing, {}, find())->in_place.size(), 1u);
}

TEST_F(LineupTest, AContenderThatFailedGivesWayToTheNextAndThenToTheChampion) {
  const Standing standing{.crowned = {{.case_name = "n256", .candidate_id = "lanes"}},
                          .contenders = {{"n256", "tiles", "lanes", 1.04, 0.99, 1.1},
                                         {"n256", "strips", "lanes", 1.06, 1.01, 1.1}}};
  Bans bans;
  Promotion wrong;
  wrong.failed_at = 256;
  EXPECT_TRUE(ban_what_failed(wrong, *assemble_winner(problem_, standing, bans, find()), standing,
                              find(), bans));
  EXPECT_EQ(winner(standing, bans), "tiles tiles tiles");
  Promotion slower;
  slower.slower_cases = {"n256"};
  EXPECT_TRUE(ban_what_failed(slower, *assemble_winner(problem_, standing, bans, find()), standing,
                              find(), bans));
  EXPECT_EQ(winner(standing, bans), "lanes lanes lanes");
}

}  // namespace
}  // namespace kbeam
