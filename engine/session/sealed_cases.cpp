#include "session/sealed_cases.h"

#include <fmt/core.h>
#include <kbeam/random.h>

#include <algorithm>

#include "base/defence.h"
#include "base/expression.h"

namespace kbeam {
namespace {

enum class Size { small, as_timed };

const Axis* find_axis(const Problem& problem, const std::string& name) {
  for (const Axis& axis : problem.axes)
    if (axis.name == name) return &axis;
  return nullptr;
}

std::int64_t drawn_below(Random& random, std::int64_t bound) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(bound)));
}

// The timed case moved to another value of the regime axis: axes that were equal to it move along,
// so that what was square stays square. Small: half of the time not square, and the others shrink,
// to keep the check cheap.
Case moved_case(const Problem& problem, const Case& model, std::int64_t value, Size size,
                Random& random) {
  Case moved = model;
  const std::int64_t old_value = model.axes.at(problem.regime_axis);
  const bool keeps_shape = size == Size::as_timed || random.below(2) == 0;
  for (const Axis& axis : problem.axes) {
    if (!axis.derived_from.empty()) continue;
    std::int64_t& entry = moved.axes[axis.name];
    if (axis.name == problem.regime_axis)
      entry = value;
    else if (entry == old_value)
      entry = keeps_shape ? std::min(value, axis.most) : 1 + drawn_below(random, value);
    else if (size == Size::small)
      entry = std::clamp<std::int64_t>(3, axis.least, std::max(axis.least, entry));
  }
  for (const Axis& axis : problem.axes)
    if (!axis.derived_from.empty())
      if (const auto derived = evaluate_expression(axis.derived_from, moved.axes); derived.ok())
        moved.axes[axis.name] = *derived;
  moved.timed = false;
  moved.pool = Pool::sealed_pool;
  return moved;
}

// Up to an eighth above or below, never the value itself.
std::int64_t near_value(std::int64_t value, const Axis& axis, Random& random) {
  const std::int64_t reach = std::max<std::int64_t>(1, value / 8);
  std::int64_t moved = value + 1 + drawn_below(random, reach);
  if (random.below(2) == 0) moved = value - 1 - drawn_below(random, reach);
  if (moved < axis.least) moved = value + 1;
  if (moved > axis.most) moved = value - 1;
  return std::clamp(moved, axis.least, axis.most);
}

void add_between_rows(const Problem& problem, const std::vector<Row>& rows, const Axis& axis,
                      Random& random, std::vector<Case>& cases) {
  const std::vector<Case> timed = problem.timed_cases();
  for (const Row& row : rows) {
    for (const std::int64_t value : {row.axis_least, row.axis_most}) {
      if (value < axis.least || value > axis.most || value == INT64_MAX) continue;
      const auto nearest =
          std::min_element(timed.begin(), timed.end(), [&](const Case& a, const Case& b) {
            const auto distance = [&](const Case& c) {
              return std::abs(c.axes.at(problem.regime_axis) - value);
            };
            return distance(a) < distance(b);
          });
      Case moved = moved_case(problem, *nearest, value, Size::small, random);
      moved.family = problem.families[random.below(problem.families.size())].name;
      moved.name = fmt::format("between_{}{}_{}", problem.regime_axis, value, moved.family);
      cases.push_back(std::move(moved));
    }
  }
}

}  // namespace

SealedCases draw_sealed_cases(const Problem& problem, const std::vector<Row>& rows,
                              std::uint64_t seed) {
  SealedCases sealed;
  const Axis* const axis = find_axis(problem, problem.regime_axis);
  const std::vector<Case> timed = problem.timed_cases();
  if (axis == nullptr || timed.empty() || problem.families.empty() ||
      !defence_is_on(Defence::sealed_cases))
    return sealed;
  Random random(seed);
  add_between_rows(problem, rows, *axis, random, sealed.checked);
  for (const Case& model : timed) {
    const std::int64_t value = model.axes.at(problem.regime_axis);
    Case small = moved_case(problem, model, near_value(value, *axis, random), Size::small, random);
    small.family = problem.families[random.below(problem.families.size())].name;
    small.name = fmt::format("sealed_near_{}_{}", model.name, small.family);
    sealed.checked.push_back(std::move(small));
    Case near =
        moved_case(problem, model, near_value(value, *axis, random), Size::as_timed, random);
    near.name = fmt::format("sealed_{}{}_near_{}", problem.regime_axis,
                            near.axes.at(problem.regime_axis), model.name);
    sealed.timed.push_back(std::move(near));
  }
  return sealed;
}

}  // namespace kbeam
