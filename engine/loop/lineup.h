// Which candidate serves which cases: the portfolio that screens are paired with, and the one that
// goes into the promotion, without what an earlier promotion proved wrong or slower. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "loop/challenges.h"
#include "loop/promotion.h"
#include "model/campaign.h"
#include "model/candidate.h"
#include "model/problem.h"

namespace kbeam {

// Champions that a promotion proved wrong, and those that it proved slower on their case.
struct Bans {
  std::set<std::string> candidates;
  std::set<std::pair<std::string, std::string>> on_case;  // case, candidate
  bool contains(const std::string& case_name, const std::string& candidate_id) const {
    return candidates.contains(candidate_id) || on_case.contains({case_name, candidate_id});
  }
};

using FindCandidate = std::function<std::optional<Candidate>(const std::string& candidate_id)>;

// Every champion at once, the baseline where there is none yet.
Candidate reference_portfolio(const Problem& problem, const std::vector<Champion>& champions,
                              const Candidate& baseline, const FindCandidate& find);

// Who could go into the promotion, oldest first.
struct Standing {
  std::vector<Champion> crowned;
  std::vector<Contender> contenders;
};

struct Lineup {
  Candidate portfolio;
  std::map<std::string, std::string> serving;  // candidate by case, where one was measured on it
  std::vector<Contender> in_place;             // of the champions that they stand in for
};

// For every case the latest champion that is not banned, or the contender that leans farthest
// against that very champion: what goes in is a choice between measured candidates, what comes out
// is claimed by the promotion alone. Nothing without a champion. Where nobody beat the baseline the
// neighbouring champion serves: what ships does not call the baseline.
std::optional<Lineup> assemble_winner(const Problem& problem, const Standing& standing,
                                      const Bans& bans, const FindCandidate& find);

// Bans what made the lineup fail. False: there is nobody to blame, and the same portfolio would
// come again.
bool ban_what_failed(const Promotion& promotion, const Lineup& lineup, const Standing& standing,
                     const FindCandidate& find, Bans& bans);

}  // namespace kbeam
