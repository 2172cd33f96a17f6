// What of each budget is used: in words for status and report, and a warning when half, four fifths
// and nearly all of one are, once each. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/campaign.h"

namespace kbeam {

struct BudgetUse {
  double wall_s = 0;
  int evaluations = 0;
  double device_s = 0;
  std::int64_t tokens = 0;
  double money = 0;
};

struct BudgetWarning {
  std::string budget;  // "wall time", "evaluations", "device time", "tokens", "money"
  int percent = 0;
  std::string text;  // "80 % of the budget for tokens is used: 81234 of 100000"
};

class BudgetWatch {
 public:
  explicit BudgetWatch(const Budget& limits) : limits_(limits) {}
  // The marks that were passed since the last look, only the highest of each budget.
  std::vector<BudgetWarning> look(const BudgetUse& use);

 private:
  Budget limits_;
  std::array<int, 5> passed_{};  // per cent, by budget
};

// The totals: [{"name": "wall time", "used": 12.5, "most": 60, "text": "12 of 60 s"}], `most` null
// where there is no limit. What nobody limits and nothing has used is left out.
Json budget_totals(const BudgetUse& use, const Budget& limits);

// "wall time 12 of 60 s, evaluations 7"
std::string budget_totals_text(const Json& totals);

}  // namespace kbeam
