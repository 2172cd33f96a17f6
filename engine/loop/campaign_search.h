// The search of a campaign as its configuration and its problem's ideas define it: the same for the
// run, for the run that goes on with it, and for whoever replays it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "loop/inbox.h"
#include "model/campaign.h"
#include "model/candidate.h"
#include "model/problem.h"
#include "search/search.h"

namespace kbeam {

// Evaluations that a campaign keeps under way: builds ahead of the judge.
inline constexpr int kBuildsAhead = 2;

struct CampaignSearch {
  std::vector<Idea> ideas;  // of the problem's sketches for this target, where they are asked for
  std::vector<std::string> sources;  // theirs
  std::unique_ptr<Search> search;
};
Result<CampaignSearch> make_search(const Problem& problem, const CampaignConfig& config);

// CampaignConfig::proposer names them with this between.
inline constexpr std::string_view kBetweenProposers = " + ";
std::vector<std::string> proposer_names(const CampaignConfig& config);
bool asks_builtin(const CampaignConfig& config);

Sketch make_sketch(const Submission& submission);

}  // namespace kbeam
