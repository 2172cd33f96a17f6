// The champion of every regime and the challenges that are open or were answered. Does not rank
// candidates.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/campaign.h"

namespace kbeam {

class ChampionBoard {
 public:
  const Champion* find(const std::string& case_name) const;
  std::vector<Champion> in_order(const std::vector<std::string>& cases) const;

  // True when the regime's champion is another candidate than before; its version is then higher.
  bool crown(const Champion& champion);

  // One challenge a regime at a time, and each candidate once.
  bool may_challenge(const std::string& case_name, const std::string& candidate_id) const;
  void open_challenge(const std::string& case_name, const std::string& candidate_id);
  void close_challenge(const std::string& case_name, const std::string& candidate_id);

 private:
  std::map<std::string, Champion> champions_;
  std::set<std::pair<std::string, std::string>> challenged_;  // case, candidate
  std::map<std::string, std::string> open_;                   // case -> candidate
};

}  // namespace kbeam
