#include "target/cuda/figures.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/defence.h"

namespace kbeam {
namespace {

double value_of(std::uint64_t cell) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(cell >> 32));
}

void fail(CheckReport& report, const PlanFigure& declared, const CheckFigure& figure) {
  if (report.verdict != Verdict::accepted) return;  // the first failure explains best
  report.verdict =
      std::isnan(figure.value) || declared.not_finite ? Verdict::not_finite : Verdict::wrong_value;
  report.sentence = fmt::format("{}{}{} is {:.4g} {}, the limit is {:.4g}", figure.where,
                                figure.where.empty() ? "" : ": ", figure.name, figure.value,
                                figure.unit, figure.limit);
}

}  // namespace

std::string spell_place(const PlanFigure& figure, std::uint32_t index) {
  const std::size_t count = std::min(figure.radix_names.size(), figure.radices.size());
  std::vector<std::int64_t> digits(count);
  auto rest = static_cast<std::int64_t>(index);
  for (std::size_t i = count; i-- > 0;) {
    const std::int64_t radix = std::max<std::int64_t>(figure.radices[i], 1);
    digits[i] = i == 0 ? rest : rest % radix;
    rest /= radix;
  }
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", figure.radix_names[i], digits[i]);
  return text;
}

CheckReport report_of_figures(const LaunchPlan& check, std::span<const std::uint64_t> cells) {
  CheckReport report;
  report.outputs_checked = 1;
  if (check.figures.empty() || cells.size() < check.figures.size()) {
    report.sentence = "the check plan reports no figure; every check must report what it measured";
    return report;
  }
  report.verdict = Verdict::accepted;
  for (std::size_t i = 0; i < check.figures.size(); ++i) {
    const PlanFigure& declared = check.figures[i];
    const CheckFigure figure{declared.name, value_of(cells[i]), declared.limit, declared.unit,
                             spell_place(declared, static_cast<std::uint32_t>(cells[i]))};
    const bool excused = !defence_is_on(Defence::nan_fails_closed) && std::isnan(figure.value);
    if (!figure.passed() && !excused) fail(report, declared, figure);
    report.figures.push_back(figure);
  }
  return report;
}

}  // namespace kbeam
