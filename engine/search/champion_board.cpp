#include "search/champion_board.h"

#include <algorithm>

namespace kbeam {

const Champion* ChampionBoard::find(const std::string& case_name) const {
  const auto found = champions_.find(case_name);
  return found == champions_.end() ? nullptr : &found->second;
}

std::vector<Champion> ChampionBoard::in_order(const std::vector<std::string>& cases) const {
  std::vector<Champion> ordered;
  for (const std::string& case_name : cases)
    if (const Champion* champion = find(case_name)) ordered.push_back(*champion);
  return ordered;
}

bool ChampionBoard::crown(const Champion& champion) {
  close_challenge(champion.case_name, champion.candidate_id);
  Champion& held = champions_[champion.case_name];
  const bool changed = held.candidate_id != champion.candidate_id;
  const int version = std::max(champion.version, held.version + (changed ? 1 : 0));
  held = champion;
  held.version = version;
  return changed;
}

bool ChampionBoard::may_challenge(const std::string& case_name,
                                  const std::string& candidate_id) const {
  return !open_.contains(case_name) && !challenged_.contains({case_name, candidate_id});
}

void ChampionBoard::open_challenge(const std::string& case_name, const std::string& candidate_id) {
  challenged_.insert({case_name, candidate_id});
  open_[case_name] = candidate_id;
}

void ChampionBoard::close_challenge(const std::string& case_name, const std::string& candidate_id) {
  challenged_.insert({case_name, candidate_id});
  const auto open = open_.find(case_name);
  if (open != open_.end() && open->second == candidate_id) open_.erase(open);
}

}  // namespace kbeam
