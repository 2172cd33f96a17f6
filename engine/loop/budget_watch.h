// Says when half, four fifths and nearly all of a budget are used, once each. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/campaign.h"

namespace kbeam {

struct BudgetUse {
  double wall_s = 0;
  int evaluations = 0;
  std::int64_t tokens = 0;
  double money = 0;
};

struct BudgetWarning {
  std::string budget;  // "wall time", "evaluations", "tokens", "money"
  int percent = 0;
  std::string text;  // "80 % of the tokens are used: 81234 of 100000"
};

class BudgetWatch {
 public:
  explicit BudgetWatch(const Budget& budget) : budget_(budget) {}
  // The marks that were passed since the last look, only the highest of each budget.
  std::vector<BudgetWarning> look(const BudgetUse& use);

 private:
  Budget budget_;
  int passed_[4] = {0, 0, 0, 0};  // per cent, by budget
};

}  // namespace kbeam
