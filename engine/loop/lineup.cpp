#include "loop/lineup.h"

#include <algorithm>
#include <map>

#include "loop/baseline.h"
#include "search/search.h"

namespace kbeam {

Candidate reference_portfolio(const Problem& problem, const std::vector<Champion>& champions,
                              const Candidate& baseline, const FindCandidate& find) {
  std::vector<Champion> rows = champions;
  std::map<std::string, Candidate> candidates;
  for (const Champion& champion : champions)
    if (const auto found = find(champion.candidate_id)) candidates[champion.candidate_id] = *found;
  std::vector<RegimePoint> points;
  for (const auto& [case_name, value] : regime_points(problem)) {
    points.push_back({case_name, value});
    if (std::ranges::find(champions, case_name, &Champion::case_name) != champions.end()) continue;
    Candidate row = baseline;
    row.rows = {baseline.row_for(value)};
    row.id = candidate_id(row);
    rows.push_back({.case_name = case_name, .candidate_id = row.id});
    candidates[row.id] = row;
  }
  return assemble_portfolio(rows, points, candidates);
}

std::optional<Candidate> assemble_winner(const Problem& problem,
                                         const std::vector<Champion>& crowned, const Bans& bans,
                                         const FindCandidate& find) {
  std::map<std::string, Champion> latest;
  for (const Champion& champion : crowned)
    if (!bans.contains(champion)) latest[champion.case_name] = champion;
  if (latest.empty()) return std::nullopt;
  std::vector<Champion> champions;
  std::vector<RegimePoint> points;
  std::map<std::string, Candidate> candidates;
  for (const auto& [case_name, value] : regime_points(problem)) {
    points.push_back({case_name, value});
    const auto found = latest.find(case_name);
    if (found == latest.end()) continue;
    champions.push_back(found->second);
    candidates[found->second.candidate_id] = *find(found->second.candidate_id);
  }
  Candidate winner = assemble_portfolio(champions, points, candidates);
  winner.id = candidate_id(winner);
  return winner;
}

bool ban_what_failed(const Promotion& promotion, const Candidate& portfolio,
                     const std::vector<Champion>& crowned, const FindCandidate& find, Bans& bans) {
  const std::size_t before = bans.candidates.size() + bans.on_case.size();
  if (promotion.failed_at) {
    const Row& to_blame = portfolio.row_for(*promotion.failed_at);
    for (const Champion& champion : crowned) {
      const std::optional<Candidate> candidate = find(champion.candidate_id);
      const Row& row = candidate->rows.front();
      if (row.source == to_blame.source && row.knobs == to_blame.knobs)
        bans.candidates.insert(champion.candidate_id);
    }
  }
  for (const std::string& case_name : promotion.slower_cases) {
    const Champion* latest = nullptr;
    for (const Champion& champion : crowned)
      if (champion.case_name == case_name && !bans.contains(champion)) latest = &champion;
    if (latest != nullptr) bans.on_case.insert({case_name, latest->candidate_id});
  }
  return bans.candidates.size() + bans.on_case.size() > before;
}

}  // namespace kbeam
