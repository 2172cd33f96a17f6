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
  std::string winner(const std::vector<Champion>& crowned, const Bans& bans) const {
    const auto candidate = assemble_winner(problem_, crowned, bans, find());
    return candidate ? served(*candidate) : "nobody";
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
  EXPECT_EQ(winner({{.case_name = "n16", .candidate_id = "lanes"},
                    {.case_name = "n256", .candidate_id = "lanes"},
                    {.case_name = "n256", .candidate_id = "tiles"}},
                   {}),
            "lanes lanes tiles")
      << "n64 is served by its neighbour";
}

TEST_F(LineupTest, AWrongRowIsBannedWithEveryChampionOfTheSameSourceAndKnobs) {
  known_["twin"] = known_["lanes"];
  known_["tuned"] = known_["lanes"];
  known_["tuned"].rows.front().knobs = {{"kLanes", "16"}};
  const std::vector<Champion> crowned{{.case_name = "n16", .candidate_id = "tuned"},
                                      {.case_name = "n16", .candidate_id = "twin"},
                                      {.case_name = "n16", .candidate_id = "lanes"},
                                      {.case_name = "n256", .candidate_id = "tiles"}};
  Bans bans;
  const Candidate portfolio = *assemble_winner(problem_, crowned, bans, find());
  Promotion failed;
  failed.failed_at = 20;
  EXPECT_TRUE(ban_what_failed(failed, portfolio, crowned, find(), bans));
  EXPECT_EQ(bans.candidates, (std::set<std::string>{"twin", "lanes"}));
  const auto next = assemble_winner(problem_, crowned, bans, find());
  EXPECT_EQ(next->row_for(16).knobs, known_["tuned"].rows.front().knobs);
}

TEST_F(LineupTest, ASlowerRowIsBannedOnItsCaseAlone) {
  const std::vector<Champion> crowned{{.case_name = "n16", .candidate_id = "strips"},
                                      {.case_name = "n16", .candidate_id = "lanes"},
                                      {.case_name = "n256", .candidate_id = "lanes"}};
  Bans bans;
  const Candidate portfolio = *assemble_winner(problem_, crowned, bans, find());
  Promotion slower;
  slower.slower_cases = {"n16"};
  EXPECT_TRUE(ban_what_failed(slower, portfolio, crowned, find(), bans));
  EXPECT_TRUE(bans.candidates.empty());
  EXPECT_EQ(winner(crowned, bans), "strips strips lanes");
  EXPECT_TRUE(ban_what_failed(slower, portfolio, crowned, find(), bans));
  EXPECT_EQ(winner(crowned, bans), "lanes lanes lanes");
}

TEST_F(LineupTest, WithoutAnybodyToBlameNothingIsBanned) {
  Bans bans;
  EXPECT_FALSE(ban_what_failed({}, baseline_, {}, find(), bans));
}

}  // namespace
}  // namespace kbeam
