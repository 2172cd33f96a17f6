#include "loop/promotion.h"

#include <fmt/core.h>
#include <kbeam/random.h>

#include <algorithm>

#include "base/entropy.h"
#include "base/expression.h"

namespace kbeam {
namespace {

constexpr double kConfidence = 0.99;

// The timed case of this row, moved to another value of the regime axis: axes that were equal to it
// move along, so that what was square stays square; the others shrink to keep the check cheap.
Case moved_case(const Problem& problem, const Case& model, std::int64_t value, Random& random) {
  Case moved = model;
  const std::int64_t old_value = model.axes.at(problem.regime_axis);
  const bool square = random.below(2) == 0;
  for (const Axis& axis : problem.axes) {
    if (!axis.derived_from.empty()) continue;
    std::int64_t& entry = moved.axes[axis.name];
    if (axis.name == problem.regime_axis)
      entry = value;
    else if (entry == old_value)
      entry = square
                  ? value
                  : 1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(value)));
    else
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

const Axis* find_axis(const Problem& problem, const std::string& name) {
  for (const Axis& axis : problem.axes)
    if (axis.name == name) return &axis;
  return nullptr;
}

// Cases run in order and the first failure ends the evaluation, so the case after the last clean
// report is to blame.
std::optional<std::int64_t> failing_axis_value(const Problem& problem,
                                               const CompareRequest& request,
                                               const Evaluation& evaluation) {
  std::vector<Case> order = request.check_cases;
  order.insert(order.end(), request.timed_cases.begin(), request.timed_cases.end());
  for (const Case& the_case : order) {
    const auto report =
        std::find_if(evaluation.checks.begin(), evaluation.checks.end(),
                     [&](const CheckReport& r) { return r.case_name == the_case.name; });
    if (report != evaluation.checks.end() && report->verdict == Verdict::accepted) continue;
    const auto value = the_case.axes.find(problem.regime_axis);
    if (value != the_case.axes.end()) return value->second;
  }
  return std::nullopt;
}

}  // namespace

std::string why_not_won(const Promotion& promotion) {
  if (promotion.evaluation.verdict != Verdict::accepted) return promotion.evaluation.reason;
  if (promotion.all_cores && promotion.all_cores->verdict != Verdict::accepted)
    return "on all cores: " + promotion.all_cores->reason;
  double delta = 0;
  for (const Measurement& measurement : promotion.evaluation.measurements)
    delta = std::max(delta, measurement.noise_floor);
  if (!(promotion.geomean.low > 1 + delta))
    return fmt::format(
        "it is right, but not confirmed faster: {:.3f}x [{:.3f}, {:.3f}] with a noise floor of "
        "{:.1f} %",
        promotion.geomean.speedup, promotion.geomean.low, promotion.geomean.high, 100 * delta);
  return {};
}

std::vector<Case> cases_between_rows(const Problem& problem, const Candidate& candidate,
                                     std::uint64_t seed) {
  std::vector<Case> cases;
  const Axis* const axis = find_axis(problem, problem.regime_axis);
  const std::vector<Case> timed = problem.timed_cases();
  if (axis == nullptr || timed.empty() || problem.families.empty()) return cases;
  Random random(seed);
  for (const Row& row : candidate.rows) {
    for (const std::int64_t value : {row.axis_least, row.axis_most}) {
      if (value < axis->least || value > axis->most || value == INT64_MAX) continue;
      const auto nearest =
          std::min_element(timed.begin(), timed.end(), [&](const Case& a, const Case& b) {
            const auto distance = [&](const Case& c) {
              return std::abs(c.axes.at(problem.regime_axis) - value);
            };
            return distance(a) < distance(b);
          });
      Case moved = moved_case(problem, *nearest, value, random);
      moved.family = problem.families[random.below(problem.families.size())].name;
      moved.name = fmt::format("between_{}{}_{}", problem.regime_axis, value, moved.family);
      cases.push_back(std::move(moved));
    }
  }
  return cases;
}

Promotion promote(const MachineBench& bench, const BaselineFacts& baseline,
                  const Candidate& candidate) {
  Promotion promotion;
  promotion.winner = candidate;
  CompareRequest request{
      .candidate = bench.builds.subject_of(candidate, candidate.id),
      .reference = bench.builds.subject_of(baseline.portfolio, baseline.portfolio.id)};
  for (const Case& the_case : bench.problem.cases)
    if (!the_case.timed) request.check_cases.push_back(the_case);
  for (Case& sealed : cases_between_rows(bench.problem, candidate, random_bits()))
    request.check_cases.push_back(std::move(sealed));
  request.timed_cases = bench.problem.timed_cases();
  request.rule = bench.judge.rules().promote;
  request.stage = Stage::promote;
  promotion.evaluation = bench.judge.compare(request);
  if (promotion.evaluation.verdict != Verdict::accepted) {
    promotion.failed_at = failing_axis_value(bench.problem, request, promotion.evaluation);
    return promotion;
  }
  promotion.geomean = summarise_cases(promotion.evaluation.measurements, kConfidence, /*seed=*/1);
  if (bench.all_cores > 1) {
    bench.progress.phase("measuring the all-cores row");
    request.threads =
        bench.all_cores;  // checked on every case again: more workers can go wrong in other ways
    request.reference =
        bench.builds.subject_of(baseline.all_cores_portfolio, baseline.all_cores_portfolio.id);
    request.rule = {.name = "all cores",
                    .pairs_per_process = kAllCoresPairs,
                    .processes = 1,
                    .fresh_base = true};
    promotion.all_cores = bench.judge.compare(request);
    if (promotion.all_cores->verdict != Verdict::accepted)
      promotion.failed_at = failing_axis_value(bench.problem, request, *promotion.all_cores);
  }
  return promotion;
}

}  // namespace kbeam
