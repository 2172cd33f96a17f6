#include "loop/summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "loop/rerun.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

bool is_timed(const Evaluation& evaluation, const std::string& case_name) {
  return std::any_of(
      evaluation.measurements.begin(), evaluation.measurements.end(),
      [&](const Measurement& measurement) { return measurement.case_name == case_name; });
}

// The problem's first figure is its headline (for QR the column residual, in eps): its worst value,
// by share of the limit, on the timed cases. (On subnormal inputs, say, an eps of the column is no
// meaningful unit.)
const CheckFigure* worst_headline_figure(const Evaluation& evaluation) {
  const CheckFigure* worst = nullptr;
  for (const CheckReport& report : evaluation.checks)
    for (const CheckFigure& figure : report.figures)
      if (is_timed(evaluation, report.case_name) &&
          (worst == nullptr || (figure.name == worst->name &&
                                figure.value / figure.limit > worst->value / worst->limit)))
        worst = &figure;
  return worst;
}

Json case_rows(const Problem& problem, const std::vector<Measurement>& measurements) {
  Json rows = Json::array();
  for (const Measurement& measurement : measurements) {
    const PairedSummary& summary = measurement.summary;
    const Case* const the_case = problem.find_case(measurement.case_name);
    const auto axis = the_case == nullptr ? AxisValues::const_iterator()
                                          : the_case->axes.find(problem.regime_axis);
    rows.push_back(
        {{"name", measurement.case_name},
         {"axis_value",
          the_case != nullptr && axis != the_case->axes.end() ? Json(axis->second) : Json()},
         {"baseline_ns", summary.reference_ns},
         {"candidate_ns", summary.candidate_ns},
         {"speedup", summary.speedup},
         {"low", summary.low},
         {"high", summary.high},
         {"comparison", std::string(to_string(summary.comparison))}});
  }
  return rows;
}

Json winner_json(const Problem& problem, const Promotion& promotion) {
  const Evaluation& evaluation = promotion.evaluation;
  Json winner{{"candidate_id", promotion.winner.id},
              {"evaluation_id", evaluation.id},
              {"verdict", std::string(to_string(evaluation.verdict))},
              {"grade", evaluation.grade},
              {"assurance", std::string(to_string(evaluation.sandbox))},
              {"weaknesses", evaluation.weaknesses}};
  const CheckFigure* const worst = worst_headline_figure(evaluation);
  const bool in_eps = worst != nullptr && worst->unit == "eps";
  winner["worst_column_error_eps"] = in_eps ? Json(worst->value) : Json();
  winner["limit_eps"] = in_eps ? Json(worst->limit) : Json();
  winner["worst_error"] = worst == nullptr ? Json()
                                           : Json{{"name", worst->name},
                                                  {"value", worst->value},
                                                  {"limit", worst->limit},
                                                  {"unit", worst->unit}};
  winner["speedup_geomean"] = promotion.geomean.speedup;
  winner["speedup_low"] = promotion.geomean.low;
  winner["speedup_high"] = promotion.geomean.high;
  winner["cases"] = case_rows(problem, evaluation.measurements);
  const Json judged = to_json(evaluation);
  for (const char* of_promotion :
       {"public", "private", "sealed", "generality_gap", "sealed_seed", "gates"})
    winner[of_promotion] = judged.at(of_promotion);
  winner["rows"] = Json::array();
  for (const Row& row : promotion.winner.rows)
    winner["rows"].push_back({{"source", row.source_name},
                              {"knobs", row.knobs},
                              {"axis_least", row.axis_least},
                              {"axis_most", row.axis_most}});
  return winner;
}

}  // namespace

Json summarise_campaign(const CampaignFigures& figures) {
  Json summary{
      {"run_id", figures.config.run_id},        {"tool_version", figures.environment.tool_version},
      {"problem", figures.config.problem_name}, {"target", figures.config.target},
      {"threads", figures.config.threads},      {"winner", nullptr}};
  const bool won = figures.promotion != nullptr && why_not_won(*figures.promotion).empty();
  if (won) summary["winner"] = winner_json(*figures.problem, *figures.promotion);
  if (!won) summary["no_winner_because"] = figures.not_promoted_because;
  if (won && figures.promotion->all_cores &&
      figures.promotion->all_cores->verdict == Verdict::accepted)
    summary["all_cores"] = {
        {"threads", figures.promotion->all_cores->measurements.front().threads},
        {"speedup_geomean",
         summarise_cases(figures.promotion->all_cores->measurements, 0.99, 1).speedup},
        {"cases", case_rows(*figures.problem, figures.promotion->all_cores->measurements)}};
  if (figures.baseline != nullptr) {
    Json rows = Json::array();
    for (const Row& row : figures.baseline->portfolio.rows)
      rows.push_back({{"source", row.source_name},
                      {"knobs", row.knobs},
                      {"axis_least", row.axis_least},
                      {"axis_most", row.axis_most}});
    summary["baseline"] = {{"name", figures.baseline->name},
                           {"notes", figures.baseline->notes},
                           {"rows", std::move(rows)}};
  } else {
    summary["baseline"] = nullptr;
  }
  summary["evaluations"] = figures.evaluations;
  summary["evaluations_per_minute"] =
      figures.search_s > 0 ? Json(figures.evaluations * 60.0 / figures.search_s) : Json();
  summary["screenings_per_minute"] = figures.screening_s > 0 && figures.screened_here > 0
                                         ? Json(figures.screened_here * 60.0 / figures.screening_s)
                                         : Json();
  summary["engine_overhead_fraction"] = figures.overhead_fraction;
  summary["wall_s"] = figures.use.wall_s;
  summary["device_s"] = figures.use.device_s;
  summary["budgets"] = budget_totals(figures.use, figures.limits);
  summary["stop_reason"] = to_string(figures.stop_reason);
  summary["archive"] = (figures.run_folder / "archive.sqlite").string();
  summary["report_html"] = (figures.run_folder / "report.html").string();
  return summary;
}

Result<ReportInput> gather_report(const Archive& archive, const Problem& problem) {
  ReportInput input;
  input.config = archive.config();
  input.environment = archive.environment();
  input.problem = problem;
  ASSIGN_OR_RETURN(input.ideas, archive.ideas());
  ASSIGN_OR_RETURN(input.candidates, archive.candidates());
  ASSIGN_OR_RETURN(input.evaluations, archive.evaluations());
  ASSIGN_OR_RETURN(const std::vector<Decision> decisions, archive.decisions());
  for (const Decision& decision : decisions) {
    std::string& text = input.decisions[decision.subject];
    text += (text.empty() ? "" : "; ") + decision.what + ": " + decision.why;
  }
  ASSIGN_OR_RETURN(const std::optional<Json> families, archive.last_event("families"));
  if (families)
    for (const Json& family : families->at("families")) {
      ASSIGN_OR_RETURN(FamilyState state, family_from_json(family));
      input.families.push_back(std::move(state));
    }
  ASSIGN_OR_RETURN(const std::vector<Event> crowned, archive.events_of("champion"));
  for (const Event& event : crowned) {
    ASSIGN_OR_RETURN(const Json body, parse_json(event.body, "a champion"));
    ASSIGN_OR_RETURN(const Champion champion, champion_from_json(body));
    ASSIGN_OR_RETURN(const int evaluations, archive.count_evaluations_before(event.sequence));
    input.ladder.push_back({evaluations, champion});
    std::erase_if(input.champions,
                  [&](const Champion& known) { return known.case_name == champion.case_name; });
    input.champions.push_back(champion);
  }
  ASSIGN_OR_RETURN(const std::vector<Event> roles, archive.events_of("role"));
  for (const Event& event : roles) {
    ASSIGN_OR_RETURN(const Json body, parse_json(event.body, "a role"));
    ASSIGN_OR_RETURN(const int evaluations, archive.count_evaluations_before(event.sequence));
    input.roles.push_back({evaluations, body.value("family", ""), body.value("role", "")});
  }
  for (const Evaluation& evaluation : input.evaluations)
    if (evaluation.stage == Stage::promote)
      for (const Measurement& measurement : evaluation.measurements)
        if (measurement.threads > 1) input.all_cores.push_back(measurement);
  ASSIGN_OR_RETURN(const std::optional<Json> recorded, archive.last_event("baseline"));
  if (recorded) {
    ASSIGN_OR_RETURN(const BaselineFacts baseline, baseline_from_json(*recorded));
    for (const Case& the_case : problem.timed_cases()) {
      const auto time = baseline.case_ns.find(the_case.name);
      const auto ceiling = baseline.ceilings.find(the_case.name);
      if (time == baseline.case_ns.end() || ceiling == baseline.ceilings.end()) continue;
      input.ceilings.push_back({the_case.name, time->second, ceiling->second.flops,
                                ceiling->second.bytes, ceiling->second.ns});
    }
  }
  ASSIGN_OR_RETURN(const std::optional<Json> summary, archive.last_event("stop"));
  if (summary) input.summary = *summary;
  ASSIGN_OR_RETURN(const std::optional<Json> proposers, archive.last_event("proposers"));
  input.rerun = rerun_command(
      input.config, proposers ? proposers->value("settings", Json::array()) : Json::array());
  return input;
}

}  // namespace kbeam
