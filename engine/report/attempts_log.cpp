// attempts_log.md: for people in an editor, and for proposers that read what was tried.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "report/facts.h"
#include "report/report.h"
#include "report/text.h"

namespace kbeam {
namespace {

// What a first page has room for.
constexpr std::size_t kLadderLines = 10;
constexpr std::size_t kFamilyLines = 8;
constexpr std::size_t kMostReason = 160;

std::string attempts_in_words(const ReportInput& input, const ReportFacts& facts) {
  const auto total = facts.attempts.size();
  std::string text = fmt::format("{} evaluations, {} accepted", total, facts.accepted);
  const double rate = summary_number(input.summary, "evaluations_per_minute");
  if (!std::isnan(rate)) text += fmt::format(", {:.0f} a minute", rate);
  const double overhead = summary_number(input.summary, "engine_overhead_fraction");
  if (!std::isnan(overhead)) text += fmt::format(", engine overhead {:.1f} %", 100 * overhead);
  return text;
}

void write_head(std::string& log, const ReportInput& input, const ReportFacts& facts) {
  log +=
      "# " + escape_markdown(input.problem.name) + ": " + escape_markdown(facts.headline) + "\n\n";
  log += escape_markdown(input.problem.title) + "\n\n";
  const auto item = [&](const char* name, const std::string& value) {
    if (!value.empty()) log += fmt::format("- {}: {}\n", name, value);
  };
  const Json winner = input.summary.is_object() ? input.summary.value("winner", Json()) : Json();
  item("run",
       markdown_code(input.config.run_id) + (facts.started.empty() ? "" : ", " + facts.started));
  item("machine",
       escape_markdown(fmt::format("{}, {} cpus; {} thread{}, target {}", input.environment.cpu,
                                   input.environment.cpus, input.config.threads,
                                   input.config.threads == 1 ? "" : "s", input.config.target)));
  item("compiler", escape_markdown(input.environment.compiler));
  item("attempts", attempts_in_words(input, facts));
  const std::string used = budgets_in_words(input.summary);
  item("stopped", escape_markdown(summary_text(input.summary, "stop_reason") +
                                  (used.empty() ? "" : "; used: " + used)));
  item("grade", markdown_code(facts.grade) +
                    (facts.grade_text.empty() ? "" : ": " + escape_markdown(facts.grade_text)));
  if (facts.winner != nullptr) {
    item("winner",
         markdown_code(facts.winner->id) + ", family " + markdown_code(facts.winner->family));
    item("worst column", fmt::format("{:.3g} eps of {:.3g} allowed",
                                     summary_number(winner, "worst_column_error_eps"),
                                     summary_number(winner, "limit_eps")));
    item("assurance", markdown_code(summary_text(winner, "assurance")));
  }
  if (facts.promotion != nullptr)
    for (const auto& [name, text] : promotion_lines(*facts.promotion))
      item(name.c_str(), escape_markdown(text));
  log += "\n";
}

void write_cases(std::string& log, const ReportInput& input, const ReportFacts& facts) {
  log += "## Result\n\nSpeed-up over " + markdown_code(facts.baseline) +
         ", median of paired ratios, with the interval that decided.\n\n";
  log += "| case | baseline | winner | speed-up | interval | is | GFLOP/s | row |\n";
  log += "|---|---:|---:|---:|---|---|---:|---|\n";
  for (const CaseFacts& row : facts.cases) {
    const double rate =
        row.ceilings != nullptr ? gflops(row.ceilings->flops, row.candidate_ns) : std::nan("");
    log += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", markdown_code(row.name),
                       format_time_ns(row.baseline_ns), format_time_ns(row.candidate_ns),
                       format_ratio(row.speedup), format_interval(row.low, row.high),
                       row.comparison.empty() ? "-" : row.comparison, format_ratio(rate),
                       escape_markdown(row.row));
  }
  if (!std::isnan(facts.speedup_geomean))
    log +=
        fmt::format("| geometric mean | | | {} | | | | |\n", format_ratio(facts.speedup_geomean));
  log += "\n";
  if (input.all_cores.empty()) return;
  log += "On all cores:";
  for (const Measurement& measurement : input.all_cores)
    log += fmt::format(" {} {} x ({}, {} threads);", markdown_code(measurement.case_name),
                       format_ratio(measurement.summary.speedup),
                       format_interval(measurement.summary.low, measurement.summary.high),
                       measurement.threads);
  log.back() = '.';
  log += "\n\n";
}

void write_ladder(std::string& log, const ReportFacts& facts) {
  if (facts.ladder.empty()) return;
  log += "## How the best grew\n\nEach line is a champion that was confirmed on fresh inputs.\n\n";
  log += "| after | case | speed-up | interval | family | candidate | geometric mean |\n";
  log += "|---:|---|---:|---|---|---|---:|\n";
  const std::size_t skipped =
      facts.ladder.size() > kLadderLines ? facts.ladder.size() - kLadderLines : 0;
  for (std::size_t i = skipped; i < facts.ladder.size(); ++i) {
    const Champion& champion = facts.ladder[i].step->champion;
    log += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", facts.ladder[i].step->evaluation,
                       markdown_code(champion.case_name), format_ratio(champion.speedup),
                       format_interval(champion.low, champion.high), markdown_code(champion.family),
                       markdown_code(champion.candidate_id), format_ratio(facts.ladder[i].geomean));
  }
  log += skipped > 0 ? fmt::format("\nThe {} steps before these are in report.html.\n\n", skipped)
                     : "\n";
}

// Those that are still tried first, the best of each kind before the others.
std::vector<const FamilyState*> in_order_of_interest(const std::vector<FamilyState>& families) {
  std::vector<const FamilyState*> order;
  for (const FamilyState& family : families) order.push_back(&family);
  std::ranges::stable_sort(order, [](const FamilyState* a, const FamilyState* b) {
    return a->retired != b->retired ? b->retired : a->best_speedup > b->best_speedup;
  });
  return order;
}

void write_families(std::string& log, const ReportInput& input) {
  if (input.families.empty()) return;
  log += "## Families\n\n| family | role | evaluations | accepted | best | what became of it |\n";
  log += "|---|---|---:|---:|---:|---|\n";
  std::vector<const FamilyState*> order = in_order_of_interest(input.families);
  const std::size_t skipped = order.size() > kFamilyLines ? order.size() - kFamilyLines : 0;
  order.resize(order.size() - skipped);
  for (const FamilyState* family : order) {
    const std::string fate =
        family->retired ? "retired: " + shorten(family->retired_why, kMostReason) : "in the beam";
    log += fmt::format("| {} | {} | {} | {} | {} | {} |\n", markdown_code(family->name),
                       to_string(family->role), family->evaluations, family->accepted,
                       family->accepted > 0 ? format_ratio(family->best_speedup) : "-",
                       escape_markdown(fate));
  }
  log += skipped > 0 ? fmt::format("\n{} more families are in report.html.\n\n", skipped) : "\n";
}

void write_rejects(std::string& log, const ReportFacts& facts) {
  if (facts.verdicts.empty()) return;
  log += "## Verdicts\n\n| verdict | attempts | first reason |\n|---|---:|---|\n";
  for (const VerdictFacts& row : facts.verdicts)
    log += fmt::format("| {} | {} | {} |\n", markdown_code(to_string(row.verdict)), row.count,
                       escape_markdown(shorten(row.example, kMostReason)));
  log += "\n";
}

void write_attempt(std::string& log, const AttemptFacts& attempt) {
  const Evaluation& evaluation = *attempt.evaluation;
  log += fmt::format("### {} · {} · {} · {} · {}", attempt.number,
                     markdown_code(evaluation.candidate_id), markdown_code(attempt.family()),
                     to_string(evaluation.stage), to_string(evaluation.verdict));
  log += attempt.geomean ? " · " + format_ratio(*attempt.geomean) + " x\n\n" : std::string("\n\n");
  if (attempt.idea != nullptr) log += "- idea: " + escape_markdown(attempt.idea->text) + "\n";
  if (attempt.candidate != nullptr) {
    for (const Row& row : attempt.candidate->rows)
      log += "- code: " + markdown_code(row.source_name) + " " +
             (row.knobs.empty() ? "with its defaults" : markdown_code(describe_knobs(row.knobs))) +
             "\n";
    log +=
        "- by: " + markdown_code(attempt.candidate->origin) +
        (attempt.candidate->parent.empty() ? ""
                                           : ", from " + markdown_code(attempt.candidate->parent)) +
        "\n";
  }
  if (!evaluation.reason.empty()) log += "- why: " + escape_markdown(evaluation.reason) + "\n";
  std::string speeds;
  for (const Measurement& measurement : evaluation.measurements) {
    const auto known = attempt.per_case.find(measurement.case_name);
    const PairedSummary& summary =
        known == attempt.per_case.end() ? measurement.summary : known->second;
    speeds += fmt::format(
        "{}{} {} {} x ({})", speeds.empty() ? "" : ", ", markdown_code(measurement.case_name),
        format_time_ns(summary.candidate_ns), format_ratio(summary.speedup),
        std::isfinite(summary.high) ? format_interval(summary.low, summary.high) : "a first look");
    if (!attempt.per_case.contains(measurement.case_name))
      speeds += " against " + markdown_code(measurement.reference);
  }
  if (!speeds.empty()) log += "- speed: " + speeds + "\n";
  if (attempt.later_attempt != 0)
    log += fmt::format("- decision: went on to attempt {}\n", attempt.later_attempt);
  else if (!attempt.decision.empty())
    log += "- decision: " + escape_markdown(attempt.decision) + "\n";
  log += "\n";
}

}  // namespace

std::string render_attempts_log(const ReportInput& input, int most_attempts) {
  const ReportFacts facts = gather_facts(input);
  std::string log;
  write_head(log, input, facts);
  write_cases(log, input, facts);
  write_ladder(log, facts);
  write_families(log, input);
  write_rejects(log, facts);
  log += "## Run it again\n\n    " + facts.reproduce + "\n\n";
  log += "## Every attempt\n\n";
  const std::size_t shown = static_cast<std::size_t>(std::max(most_attempts, 0));
  const std::size_t skipped = facts.attempts.size() > shown ? facts.attempts.size() - shown : 0;
  if (skipped > 0)
    log += fmt::format("The first {} attempts are left out here; the run's archive has them.\n\n",
                       skipped);
  for (std::size_t i = skipped; i < facts.attempts.size(); ++i)
    write_attempt(log, facts.attempts[i]);
  return log;
}

}  // namespace kbeam
