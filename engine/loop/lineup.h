// Which candidate serves which cases: the portfolio that screens are paired with, and the one that
// goes into the promotion, without what an earlier promotion proved wrong or slower. Pure.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "loop/promotion.h"
#include "model/campaign.h"
#include "model/candidate.h"
#include "model/problem.h"

namespace kbeam {

// Champions that a promotion proved wrong, and those that it proved slower on their case.
struct Bans {
  std::set<std::string> candidates;
  std::set<std::pair<std::string, std::string>> on_case;  // case, candidate
  bool contains(const Champion& champion) const {
    return candidates.contains(champion.candidate_id) ||
           on_case.contains({champion.case_name, champion.candidate_id});
  }
};

using FindCandidate = std::function<std::optional<Candidate>(const std::string& candidate_id)>;

// Every champion at once, the baseline where there is none yet.
Candidate reference_portfolio(const Problem& problem, const std::vector<Champion>& champions,
                              const Candidate& baseline, const FindCandidate& find);

// The latest champion of every case that is not banned; nothing where none is left. Where nobody
// beat the baseline the neighbouring champion serves: what ships does not call the baseline.
// `crowned`: oldest first.
std::optional<Candidate> assemble_winner(const Problem& problem,
                                         const std::vector<Champion>& crowned, const Bans& bans,
                                         const FindCandidate& find);

// Bans what made `portfolio` fail. False: there is nobody to blame, and the same portfolio would
// come again.
bool ban_what_failed(const Promotion& promotion, const Candidate& portfolio,
                     const std::vector<Champion>& crowned, const FindCandidate& find, Bans& bans);

}  // namespace kbeam
