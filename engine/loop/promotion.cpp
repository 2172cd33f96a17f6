#include "loop/promotion.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "measure/statistics.h"
#include "measure/stopping_rule.h"
#include "session/sealed_cases.h"

namespace kbeam {
namespace {

// Cases on which even the interval that no other claim shares lies below the baseline: a loss needs
// no stronger proof because there are many cases.
std::vector<std::string> find_slower_cases(const Evaluation& evaluation, double confidence) {
  std::vector<std::string> slower;
  for (const Measurement& measurement : evaluation.measurements)
    if (summarise_pairs(measurement.samples, confidence, measurement.noise_floor).comparison ==
        Comparison::slower)
      slower.push_back(measurement.case_name);
  return slower;
}

// The row to blame for a failed case, by its value of the regime axis.
std::optional<std::int64_t> failing_axis_value(const Problem& problem,
                                               const CompareRequest& request,
                                               const Evaluation& evaluation) {
  for (const std::vector<Case>* cases :
       {&request.check_cases, &request.timed_cases, &request.held_out})
    for (const Case& the_case : *cases)
      if (the_case.name == evaluation.failed_case)
        if (const auto value = the_case.axes.find(problem.regime_axis);
            value != the_case.axes.end())
          return value->second;
  return std::nullopt;
}

}  // namespace

std::string why_not_won(const Promotion& promotion) {
  if (promotion.evaluation.verdict != Verdict::accepted) return promotion.evaluation.reason;
  if (promotion.all_cores && promotion.all_cores->verdict != Verdict::accepted)
    return "on all cores: " + promotion.all_cores->reason;
  if (std::ssize(promotion.slower_cases) > promotion.slower_allowed)
    return fmt::format(
        "it is slower than the baseline on {}, and {}; a goal with 'slower <= {}' would allow it",
        fmt::join(promotion.slower_cases, ", "),
        promotion.slower_allowed == 0 ? "no case may lose"
                                      : fmt::format("only {} may lose", promotion.slower_allowed),
        promotion.slower_cases.size());
  // Were each case off by its noise floor, their mean would be off by the mean of these.
  double delta = 0;
  for (const Measurement& measurement : promotion.evaluation.measurements)
    delta +=
        measurement.noise_floor / static_cast<double>(promotion.evaluation.measurements.size());
  if (!(promotion.geomean.low > 1 + delta))
    return fmt::format(
        "it is right, but not confirmed faster: {:.3f}x [{:.3f}, {:.3f}] with a noise floor of "
        "{:.1f} %",
        promotion.geomean.speedup, promotion.geomean.low, promotion.geomean.high, 100 * delta);
  return {};
}

bool engine_failed(const Promotion& promotion) {
  return promotion.evaluation.verdict == Verdict::engine_failed ||
         (promotion.all_cores && promotion.all_cores->verdict == Verdict::engine_failed);
}

void summarise(Promotion& promotion) {
  const Evaluation& evaluation = promotion.evaluation;
  promotion.geomean = summarise_cases(evaluation.measurements, promotion.confidence, /*seed=*/1);
  promotion.slower_cases = find_slower_cases(evaluation, promotion.case_confidence);
}

Promotion promote(const MachineBench& bench, const BaselineFacts& baseline,
                  const Candidate& candidate, const PromotionTerms& terms) {
  Promotion promotion;
  promotion.slower_allowed = terms.slower_allowed;
  promotion.winner = candidate;
  CompareRequest request{
      .candidate = bench.builds.subject_of(candidate, candidate.id),
      .reference = bench.builds.subject_of(baseline.portfolio, baseline.portfolio.id)};
  for (const Case& the_case : bench.problem.cases) {
    if (!the_case.timed) request.check_cases.push_back(the_case);
    if (the_case.pool == Pool::private_pool) request.held_out.push_back(the_case);
  }
  SealedCases sealed = draw_sealed_cases(bench.problem, candidate.rows, terms.sealed_seed);
  std::move(sealed.checked.begin(), sealed.checked.end(), std::back_inserter(request.check_cases));
  std::move(sealed.timed.begin(), sealed.timed.end(), std::back_inserter(request.held_out));
  request.timed_cases = bench.problem.timed_cases();
  request.rule = bench.judge.rules().promote;
  request.rule.claims = static_cast<int>(request.timed_cases.size()) * terms.attempts;
  request.most_s = terms.most_s;
  request.stage = Stage::promote;
  promotion.evaluation = bench.judge.compare(request);
  promotion.evaluation.sealed_seed = terms.sealed_seed;
  if (promotion.evaluation.verdict != Verdict::accepted) {
    promotion.failed_at = failing_axis_value(bench.problem, request, promotion.evaluation);
    return promotion;
  }
  promotion.case_confidence = joint_confidence(request.rule);
  promotion.confidence = 1 - (1 - promotion.case_confidence) / terms.attempts;
  summarise(promotion);
  for (const Measurement& measurement : promotion.evaluation.measurements)
    if (measurement.noise_floor > kWidestSame)
      promotion.evaluation.weaknesses.push_back(
          fmt::format("case {}: identical kernels may differ by {:.0f} % on this machine now",
                      measurement.case_name, 100 * measurement.noise_floor));
  if (std::ssize(promotion.slower_cases) > terms.slower_allowed) return promotion;
  if (bench.all_cores > 1) {
    bench.progress.phase("measuring the all-cores row");
    request.held_out.clear();
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
