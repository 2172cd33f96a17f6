#include "loop/budget_watch.h"

#include <fmt/core.h>

#include <array>

namespace kbeam {
namespace {

constexpr std::array kMarks{50, 80, 95};

struct Line {
  const char* name;
  double used;
  double most;
  int digits;
};

}  // namespace

std::vector<BudgetWarning> BudgetWatch::look(const BudgetUse& use) {
  const std::array lines{
      Line{"wall time", use.wall_s, budget_.wall_s, 0},
      Line{"evaluations", static_cast<double>(use.evaluations),
           static_cast<double>(budget_.evaluations), 0},
      Line{"tokens", static_cast<double>(use.tokens), static_cast<double>(budget_.tokens), 0},
      Line{"money", use.money, budget_.money, 4}};
  std::vector<BudgetWarning> warnings;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (line.most <= 0) continue;
    int mark = 0;
    for (const int percent : kMarks)
      if (line.used >= line.most * percent / 100) mark = percent;
    if (mark <= passed_[i]) continue;
    passed_[i] = mark;
    warnings.push_back({line.name, mark,
                        fmt::format("{} % of the budget for {} is used: {:.{}f} of {:.{}f}", mark,
                                    line.name, line.used, line.digits, line.most, line.digits)});
  }
  return warnings;
}

}  // namespace kbeam
