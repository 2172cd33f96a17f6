// The data set of a run: every attempt with its idea, code, verdict and times.
#include <cmath>
#include <nlohmann/json.hpp>

#include "model/json_forms.h"
#include "report/export.h"
#include "report/facts.h"

namespace kbeam {
namespace {

constexpr int kDatasetVersion = 1;

Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json campaign_line(const ReportInput& run) {
  Json cases = Json::array();
  for (const Case& one : run.problem.cases)
    if (one.pool == Pool::public_pool)
      cases.push_back(
          {{"name", one.name}, {"axes", one.axes}, {"family", one.family}, {"timed", one.timed}});
  Json environment = to_json(run.environment);
  environment.erase("compile_flags");  // they name folders of the machine
  return {{"kind", "campaign"},
          {"version", kDatasetVersion},
          {"run_id", run.config.run_id},
          {"problem", run.problem.name},
          {"problem_hash", run.config.problem_hash},
          {"target", run.config.target},
          {"grade", run.config.grade},
          {"seed", run.config.seed},
          {"threads", run.config.threads},
          {"proposer", run.config.proposer},
          {"environment", std::move(environment)},
          {"cases", std::move(cases)}};
}

Json idea_of(const AttemptFacts& attempt) {
  if (attempt.idea == nullptr) return nullptr;
  return {{"id", attempt.idea->id},
          {"family", attempt.idea->family},
          {"category", attempt.idea->category},
          {"text", attempt.idea->text},
          {"expected", attempt.idea->expected},
          {"parents", attempt.idea->parents}};
}

Json code_of(const AttemptFacts& attempt) {
  Json rows = Json::array();
  if (attempt.candidate == nullptr) return rows;
  for (const Row& row : attempt.candidate->rows)
    rows.push_back({{"source_name", row.source_name},
                    {"source", row.source},
                    {"knobs", row.knobs},
                    {"axis_least", row.axis_least},
                    {"axis_most", row.axis_most}});
  return rows;
}

// Against the baseline where that is known, else against what it was paired with.
Json times_of(const AttemptFacts& attempt) {
  Json times = Json::array();
  for (const Measurement& measurement : attempt.evaluation->measurements) {
    const auto known = attempt.per_case.find(measurement.case_name);
    const bool same_threads = known != attempt.per_case.end();
    const PairedSummary& summary = measurement.summary;
    times.push_back(
        {{"case", measurement.case_name},
         {"threads", measurement.threads},
         {"candidate_ns", number(summary.candidate_ns)},
         {"reference", measurement.reference},
         {"reference_ns", number(summary.reference_ns)},
         {"speedup_over_reference", number(summary.speedup)},
         {"low", number(summary.low)},
         {"high", number(summary.high)},
         {"confidence", number(summary.confidence)},
         {"pairs", summary.pairs},
         {"comparison", std::string(to_string(summary.comparison))},
         {"speedup_over_baseline", same_threads ? number(known->second.speedup) : Json()}});
  }
  return times;
}

// The worst of every figure by share of its limit: how near to wrong it was.
Json figures_of(const Evaluation& evaluation) {
  std::map<std::string, const CheckFigure*> worst;
  for (const CheckReport& report : evaluation.checks)
    for (const CheckFigure& figure : report.figures) {
      const CheckFigure*& held = worst[figure.name];
      if (held == nullptr || figure.value / figure.limit > held->value / held->limit ||
          std::isnan(figure.value))
        held = &figure;
    }
  Json figures = Json::object();
  for (const auto& [name, figure] : worst)
    figures[name] = {
        {"value", number(figure->value)}, {"limit", number(figure->limit)}, {"unit", figure->unit}};
  return figures;
}

Json attempt_line(const AttemptFacts& attempt) {
  const Evaluation& evaluation = *attempt.evaluation;
  const Candidate* candidate = attempt.candidate;
  return {{"kind", "attempt"},
          {"number", attempt.number},
          {"evaluation_id", evaluation.id},
          {"candidate_id", evaluation.candidate_id},
          {"parent_id", candidate == nullptr ? std::string() : candidate->parent},
          {"parent_attempts", attempt.parents},
          {"family", attempt.family()},
          {"proposer", candidate == nullptr ? std::string() : candidate->origin},
          {"idea", idea_of(attempt)},
          {"code", code_of(attempt)},
          {"stage", std::string(to_string(evaluation.stage))},
          {"verdict", std::string(to_string(evaluation.verdict))},
          {"reason", evaluation.reason},
          {"grade", evaluation.grade},
          {"assurance", std::string(to_string(evaluation.sandbox))},
          {"figures", figures_of(evaluation)},
          {"times", times_of(attempt)},
          {"geomean_over_baseline", attempt.geomean ? number(*attempt.geomean) : Json()},
          {"covers_every_case", attempt.covers_every_case},
          {"decision", attempt.decision},
          {"build_s", evaluation.build_s},
          {"check_s", evaluation.check_s},
          {"measure_s", evaluation.measure_s},
          {"started_unix_ms", evaluation.started_unix_ms}};
}

}  // namespace

std::string render_dataset(const ReportInput& run) {
  std::string lines = json_text(campaign_line(run)) + "\n";
  for (const AttemptFacts& attempt : gather_facts(run).attempts)
    lines += json_text(attempt_line(attempt)) + "\n";
  return lines;
}

}  // namespace kbeam
