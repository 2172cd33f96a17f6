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

std::optional<Lineup> assemble_winner(const Problem& problem, const Standing& standing,
                                      const Bans& bans, const FindCandidate& find) {
  std::map<std::string, Champion> latest;
  for (const Champion& champion : standing.crowned)
    if (!bans.contains(champion.case_name, champion.candidate_id))
      latest[champion.case_name] = champion;
  if (latest.empty()) return std::nullopt;
  Lineup lineup;
  std::vector<Champion> champions;
  std::vector<RegimePoint> points;
  std::map<std::string, Candidate> candidates;
  for (const auto& [case_name, value] : regime_points(problem)) {
    points.push_back({case_name, value});
    const auto found = latest.find(case_name);
    if (found == latest.end()) continue;
    Champion serving = found->second;
    const Contender* best = nullptr;
    for (const Contender& contender : standing.contenders)
      if (contender.case_name == case_name && contender.against == serving.candidate_id &&
          !bans.contains(case_name, contender.candidate_id) &&
          contender.lean() > (best == nullptr ? 1 : best->lean()))
        best = &contender;
    if (best != nullptr) {
      lineup.in_place.push_back(*best);
      serving.candidate_id = best->candidate_id;
    }
    lineup.serving[case_name] = serving.candidate_id;
    candidates[serving.candidate_id] = *find(serving.candidate_id);
    champions.push_back(std::move(serving));
  }
  lineup.portfolio = assemble_portfolio(champions, points, candidates);
  lineup.portfolio.id = candidate_id(lineup.portfolio);
  return lineup;
}

bool ban_what_failed(const Promotion& promotion, const Lineup& lineup, const Standing& standing,
                     const FindCandidate& find, Bans& bans) {
  const std::size_t before = bans.candidates.size() + bans.on_case.size();
  if (promotion.failed_at) {
    const Row& to_blame = lineup.portfolio.row_for(*promotion.failed_at);
    const auto ban = [&](const std::string& id) {
      const std::optional<Candidate> candidate = find(id);
      const Row& row = candidate->rows.front();
      if (row.source == to_blame.source && row.knobs == to_blame.knobs) bans.candidates.insert(id);
    };
    for (const Champion& champion : standing.crowned) ban(champion.candidate_id);
    for (const Contender& contender : standing.contenders) ban(contender.candidate_id);
  }
  for (const std::string& case_name : promotion.slower_cases)
    if (const auto serving = lineup.serving.find(case_name); serving != lineup.serving.end())
      bans.on_case.insert({case_name, serving->second});
  return bans.candidates.size() + bans.on_case.size() > before;
}

}  // namespace kbeam
