#include "loop/budget_watch.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace kbeam {
namespace {

constexpr std::array kMarks{50, 80, 95};

struct Line {
  const char* name;
  double used;
  double most;
  int digits;
  const char* unit;

  std::string text() const {
    if (most <= 0) return fmt::format("{:.{}f}{}", used, digits, unit);
    return fmt::format("{:.{}f} of {:.{}f}{}", used, digits, most, digits, unit);
  }
};

std::array<Line, 5> lines_of(const BudgetUse& use, const Budget& budget) {
  return {
      Line{"wall time", use.wall_s, budget.wall_s, 0, " s"},
      Line{"evaluations", static_cast<double>(use.evaluations),
           static_cast<double>(budget.evaluations), 0, ""},
      Line{"device time", use.device_s, budget.device_s, 0, " s"},
      Line{"tokens", static_cast<double>(use.tokens), static_cast<double>(budget.tokens), 0, ""},
      Line{"money", use.money, budget.money, 4, ""}};
}

}  // namespace

std::vector<BudgetWarning> BudgetWatch::look(const BudgetUse& use) {
  const auto lines = lines_of(use, limits_);
  std::vector<BudgetWarning> warnings;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    if (line.most <= 0) continue;
    int mark = 0;
    for (const int percent : kMarks)
      if (line.used >= line.most * percent / 100) mark = percent;
    if (mark <= passed_[i]) continue;
    passed_[i] = mark;
    warnings.push_back(
        {line.name, mark,
         fmt::format("{} % of the budget for {} is used: {}", mark, line.name, line.text())});
  }
  return warnings;
}

Json budget_totals(const BudgetUse& use, const Budget& limits) {
  Json totals = Json::array();
  for (const Line& line : lines_of(use, limits))
    if (line.used > 0 || line.most > 0)
      totals.push_back({{"name", line.name},
                        {"used", line.used},
                        {"most", line.most > 0 ? Json(line.most) : Json()},
                        {"text", line.text()}});
  return totals;
}

std::string budget_totals_text(const Json& totals) {
  std::string text;
  for (const Json& one : totals)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.at("name").get<std::string>(),
                        one.at("text").get<std::string>());
  return text;
}

}  // namespace kbeam
