// Families that whoever steers drops or protects: in the search, and again when a run is absorbed.
#include <gtest/gtest.h>

#include <set>

#include "search/search.h"
#include "search/simulated_campaign.h"

namespace kbeam {
namespace {

const std::vector<std::string> kCases{"n16", "n512"};

SimulatedFamily family(const std::string& name, double peak) {
  SimulatedFamily made;
  made.name = name;
  for (const std::string& case_name : kCases) {
    made.peak[case_name] = peak;
    made.summit[case_name] = {2, 2, 1, 1, 1};
  }
  return made;
}

SimulatedCampaign campaign() {
  SimulatedFamily broken = family("broken", 3);
  broken.verdict = [](const std::vector<int>&) { return Verdict::crashed; };
  return {kCases, {family("fast", 6), family("middle", 4), family("slow", 1.1), broken}, 11};
}

FamilyState state_of(const Search& search, const std::string& name) {
  for (const FamilyState& state : search.families())
    if (state.name == name) return state;
  ADD_FAILURE() << "no family " << name;
  return {};
}

TEST(SearchSteering, ADroppedFamilyIsAskedForNothingMoreAndKeepsItsChampions) {
  SimulatedCampaign run = campaign();
  const auto search = Search::make(run.config(), run.sketches());
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(run.step(*search));
  const std::size_t champions = search->champions().size();
  ASSERT_GT(champions, 0u);
  EXPECT_EQ(search->champions().front().family, "fast");
  ASSERT_TRUE(search->drop("fast", "asked for by a test"));
  EXPECT_TRUE(state_of(*search, "fast").retired);
  EXPECT_EQ(state_of(*search, "fast").retired_why, "asked for by a test");
  EXPECT_EQ(search->champions().size(), champions);
  run.trace.clear();
  for (int i = 0; i < 300 && run.step(*search); ++i) {
  }
  EXPECT_GT(run.trace.size(), 100u);  // the others were brought back when nothing else was left
  for (const Proposal& proposal : run.trace) EXPECT_NE(proposal.candidate.family, "fast");
}

TEST(SearchSteering, AFamilyThatIsDroppedBeforeItsFirstLookHoldsNothingUp) {
  SimulatedCampaign run = campaign();
  const auto search = Search::make(run.config(), run.sketches());
  ASSERT_TRUE(search->drop("slow", "not wanted"));
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(run.step(*search));
    seen.insert(run.trace.back().candidate.family);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"fast", "middle", "broken"}));
  EXPECT_GT(run.confirmations, 0) << "challenges wait for first looks that never come";
  ASSERT_TRUE(search->protect("slow", "wanted after all"));
  const auto proposal = search->ask();
  ASSERT_TRUE(proposal.has_value());
  EXPECT_EQ(proposal->candidate.family, "slow");
  EXPECT_EQ(proposal->strategy, "default");
}

TEST(SearchSteering, AProtectedFamilyIsNeverRetiredAndOneThatWasComesBack) {
  SimulatedCampaign run = campaign();
  const auto search = Search::make(run.config(), run.sketches());
  ASSERT_TRUE(search->protect("broken", "a test insists"));
  for (int i = 0; i < 80; ++i) ASSERT_TRUE(run.step(*search));
  EXPECT_FALSE(state_of(*search, "broken").retired);
  EXPECT_GT(state_of(*search, "broken").evaluations, run.config().trials_when_wrong);

  SimulatedCampaign other = campaign();
  const auto later = Search::make(other.config(), other.sketches());
  for (int i = 0; i < 80; ++i) ASSERT_TRUE(other.step(*later));
  ASSERT_TRUE(state_of(*later, "broken").retired);
  const int before = state_of(*later, "broken").evaluations;
  ASSERT_TRUE(later->protect("broken", "a test insists"));
  EXPECT_FALSE(state_of(*later, "broken").retired);
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(other.step(*later));
  EXPECT_GT(state_of(*later, "broken").evaluations, before);
}

TEST(SearchSteering, KnowsNoFamilyThatIsNotThere) {
  SimulatedCampaign run = campaign();
  const auto search = Search::make(run.config(), run.sketches());
  EXPECT_FALSE(search->drop("fats", "mistyped"));
  EXPECT_FALSE(search->protect("", "mistyped"));
  EXPECT_EQ(search->families().size(), 4u);
}

// Two under way, as a campaign keeps them: what is absorbed with its steering in place goes on as
// the run itself did.
TEST(SearchSteering, AbsorbingARunWithItsSteeringGivesTheStateOfThatRun) {
  SimulatedCampaign run = campaign();
  SearchConfig config = run.config();
  config.in_flight = 2;
  const auto live = Search::make(config, run.sketches());
  const auto absorbed = Search::make(config, run.sketches());
  std::vector<Proposal> under_way;
  for (int i = 0; i < 60; ++i) {
    for (Search* search : {live.get(), absorbed.get()}) {
      if (i == 9) {
        ASSERT_TRUE(search->drop("middle", "why"));
      }
      if (i == 25) {
        ASSERT_TRUE(search->protect("slow", "why"));
      }
      if (i == 40) {
        ASSERT_TRUE(search->protect("middle", "why"));
      }
    }
    while (under_way.size() < 2) {
      const auto proposal = live->ask();
      ASSERT_TRUE(proposal.has_value());
      under_way.push_back(*proposal);
    }
    const Candidate candidate = under_way.front().candidate;
    under_way.erase(under_way.begin());
    const Observation seen = run.screen(candidate);
    live->tell(seen);
    absorbed->absorb(candidate, seen);
    for (Search* search : {live.get(), absorbed.get()}) run.answer_challenges(*search);
  }
  for (const Proposal& waiting : under_way) {
    const auto next = absorbed->ask();
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(next->candidate.id, waiting.candidate.id);
  }
  for (int i = 0; i < 20; ++i) {
    const auto expected = live->ask(), found = absorbed->ask();
    ASSERT_EQ(expected.has_value(), found.has_value());
    if (!expected) break;
    EXPECT_EQ(expected->candidate.id, found->candidate.id);
    EXPECT_EQ(expected->why, found->why);
  }
}

}  // namespace
}  // namespace kbeam
