#include "report/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "report/text.h"

namespace kbeam {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

const Json& member(const Json& object, const std::string& name) {
  static const Json none;
  if (!object.is_object()) return none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

template <typename T>
std::map<std::string, const T*> index_by_id(const std::vector<T>& nouns) {
  std::map<std::string, const T*> index;
  for (const T& noun : nouns) index[noun.id] = &noun;
  return index;
}

template <typename T>
const T* find_in(const std::map<std::string, const T*>& index, const std::string& id) {
  const auto found = index.find(id);
  return found == index.end() ? nullptr : found->second;
}

// The summary as a speedup over the baseline: directly, or through what the reference was known to
// be.
std::optional<PairedSummary> against_baseline(
    const Measurement& measurement, const std::map<std::string, const Candidate*>& candidates) {
  PairedSummary summary = measurement.summary;
  if (std::isfinite(measurement.reference_speedup)) {
    summary.speedup *= measurement.reference_speedup;
    summary.low *= measurement.reference_speedup;
    summary.high *= measurement.reference_speedup;
    return summary;
  }
  if (find_in(candidates, measurement.reference) != nullptr) return std::nullopt;
  return summary;
}

std::vector<AttemptFacts> gather_attempts(const ReportInput& input) {
  const auto candidates = index_by_id(input.candidates);
  const auto ideas = index_by_id(input.ideas);
  const std::size_t timed = input.problem.timed_cases().size();
  std::vector<AttemptFacts> attempts;
  std::map<std::string, std::size_t> last_of_candidate;
  for (const Evaluation& evaluation : input.evaluations) {
    AttemptFacts attempt;
    attempt.number = static_cast<int>(attempts.size()) + 1;
    attempt.evaluation = &evaluation;
    attempt.candidate = find_in(candidates, evaluation.candidate_id);
    if (attempt.candidate != nullptr) attempt.idea = find_in(ideas, attempt.candidate->idea_id);
    double log_sum = 0;
    for (const Measurement& measurement : evaluation.measurements) {
      const std::optional<PairedSummary> summary = against_baseline(measurement, candidates);
      if (!summary || measurement.threads != input.config.threads) continue;
      attempt.per_case[measurement.case_name] = *summary;
      log_sum += std::log(summary->speedup);
    }
    if (!attempt.per_case.empty())
      attempt.geomean = std::exp(log_sum / static_cast<double>(attempt.per_case.size()));
    attempt.covers_every_case = attempt.per_case.size() >= timed;
    const auto [last, first_time] =
        last_of_candidate.try_emplace(evaluation.candidate_id, attempts.size());
    if (!first_time) {
      attempts[last->second].later_attempt = attempt.number;
      last->second = attempts.size();
    }
    attempts.push_back(std::move(attempt));
  }
  for (AttemptFacts& attempt : attempts) {
    if (attempt.later_attempt != 0) continue;
    const auto decision = input.decisions.find(attempt.evaluation->candidate_id);
    if (decision != input.decisions.end()) attempt.decision = decision->second;
  }
  return attempts;
}

std::vector<CaseFacts> gather_cases(const ReportInput& input, const Candidate* winner) {
  std::vector<CaseFacts> cases;
  const Json& rows = member(member(input.summary, "winner"), "cases");
  for (const Case& timed : input.problem.timed_cases()) {
    CaseFacts facts{timed.name, kUnknown, kUnknown, kUnknown, kUnknown, kUnknown, "", "", nullptr};
    for (const CaseCeilings& ceilings : input.ceilings)
      if (ceilings.case_name == timed.name) facts.ceilings = &ceilings;
    if (facts.ceilings != nullptr) facts.baseline_ns = facts.ceilings->baseline_ns;
    for (const Json& row : rows.is_array() ? rows : Json::array()) {
      if (summary_text(row, "name") != timed.name) continue;
      facts.baseline_ns = summary_number(row, "baseline_ns");
      facts.candidate_ns = summary_number(row, "candidate_ns");
      facts.speedup = summary_number(row, "speedup");
      facts.low = summary_number(row, "low");
      facts.high = summary_number(row, "high");
      facts.comparison = summary_text(row, "comparison");
    }
    const auto axis = timed.axes.find(input.problem.regime_axis);
    if (winner != nullptr && !winner->rows.empty()) {
      const Row& row = winner->row_for(axis == timed.axes.end() ? 0 : axis->second);
      facts.row = row.source_name + (row.knobs.empty() ? "" : ", " + describe_knobs(row.knobs));
    }
    cases.push_back(std::move(facts));
  }
  return cases;
}

std::vector<LadderFacts> gather_ladder(const ReportInput& input) {
  std::map<std::string, const Champion*> standing;
  for (const Case& timed : input.problem.timed_cases()) standing[timed.name] = nullptr;
  std::vector<LadderFacts> ladder;
  for (const LadderStep& step : input.ladder) {
    standing[step.champion.case_name] = &step.champion;
    double speedup = 0, low = 0, high = 0;
    for (const auto& [name, champion] : standing) {
      if (champion == nullptr) continue;
      speedup += std::log(champion->speedup);
      low += std::log(champion->low);
      high += std::log(champion->high);
    }
    const auto count = static_cast<double>(standing.size());
    ladder.push_back(
        {&step, std::exp(speedup / count), std::exp(low / count), std::exp(high / count)});
  }
  return ladder;
}

std::vector<VerdictFacts> gather_verdicts(const ReportInput& input) {
  std::vector<VerdictFacts> verdicts;
  for (const Verdict verdict : all_verdicts()) {
    VerdictFacts facts{verdict, 0, ""};
    for (const Evaluation& evaluation : input.evaluations) {
      if (evaluation.verdict != verdict) continue;
      ++facts.count;
      if (facts.example.empty()) facts.example = evaluation.reason;
    }
    if (facts.count > 0) verdicts.push_back(facts);
  }
  return verdicts;
}

std::string make_reach(const std::vector<CaseFacts>& cases) {
  const auto faster = std::ranges::count(cases, "faster", &CaseFacts::comparison);
  const auto total = static_cast<std::ptrdiff_t>(cases.size());
  return faster == total ? fmt::format("faster on all {} cases", total)
                         : fmt::format("faster on {} of {} cases", faster, total);
}

std::string make_headline(const ReportFacts& facts) {
  if (facts.attempts.empty()) return "nothing was evaluated";
  if (facts.winner == nullptr || std::isnan(facts.speedup_geomean))
    return "no candidate was confirmed to be faster than " + facts.baseline;
  return fmt::format("{} x the speed of {}, {}", format_ratio(facts.speedup_geomean),
                     facts.baseline, facts.reach);
}

}  // namespace

double summary_number(const Json& object, const std::string& name) {
  const Json& value = member(object, name);
  if (value == "inf") return HUGE_VAL;
  if (value == "-inf") return -HUGE_VAL;
  return value.is_number() ? value.get<double>() : kUnknown;
}

std::string budgets_in_words(const Json& summary) {
  const Json& budgets = member(summary, "budgets");
  std::string text;
  if (budgets.is_array())
    for (const Json& one : budgets)
      text +=
          (text.empty() ? "" : ", ") + summary_text(one, "name") + " " + summary_text(one, "text");
  return text;
}

std::string summary_text(const Json& object, const std::string& name) {
  const Json& value = member(object, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}

double gflops(double flops, double time_ns) {
  return flops / time_ns;
}

std::vector<std::pair<std::string, std::string>> promotion_lines(const Evaluation& promotion) {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto add_pool = [&](const char* name, const std::optional<PoolResult>& pool) {
    if (!pool || pool->cases == 0) return;
    std::string text = fmt::format("{} of {} passed", pool->passed, pool->cases);
    if (pool->speedup) text += fmt::format(", {:.2f} x the baseline", *pool->speedup);
    lines.emplace_back(name, text);
  };
  add_pool("public cases", promotion.public_pool);
  add_pool("private cases", promotion.private_pool);
  add_pool("sealed cases", promotion.sealed_pool);
  if (promotion.generality_gap)
    lines.emplace_back("generality gap",
                       fmt::format("{:+.1f} % faster on public cases than on held-out ones",
                                   100 * *promotion.generality_gap));
  if (promotion.gates)
    for (const GateResult& gate : *promotion.gates)
      lines.emplace_back("gate " + gate.name,
                         fmt::format("{}: {}", to_string(gate.verdict), gate.sentence));
  return lines;
}

ReportFacts gather_facts(const ReportInput& input) {
  ReportFacts facts;
  facts.attempts = gather_attempts(input);
  const Json& winner = member(input.summary, "winner");
  const std::string winner_id = summary_text(winner, "candidate_id");
  for (const Candidate& candidate : input.candidates)
    if (!winner_id.empty() && candidate.id == winner_id) facts.winner = &candidate;
  for (const Evaluation& evaluation : input.evaluations)
    if (evaluation.stage == Stage::promote && evaluation.public_pool &&
        (evaluation.measurements.empty() ||
         evaluation.measurements.front().threads == input.config.threads))
      facts.promotion = &evaluation;
  facts.cases = gather_cases(input, facts.winner);
  facts.ladder = gather_ladder(input);
  facts.sketches = add_ancestry(input, winner_id, facts.attempts);
  facts.category_gains = gather_gains(GainOf::category, facts.attempts, facts.ladder);
  facts.origin_gains = gather_gains(GainOf::origin, facts.attempts, facts.ladder);
  facts.verdicts = gather_verdicts(input);
  facts.speedup_geomean = summary_number(winner, "speedup_geomean");
  facts.baseline = summary_text(input.summary, "baseline");
  if (facts.baseline.empty() && !input.problem.baselines.empty())
    facts.baseline = input.problem.baselines.front().name;
  if (facts.baseline.empty()) facts.baseline = "the baseline";
  facts.grade = summary_text(winner, "grade");
  if (facts.grade.empty() && !input.problem.grades.empty())
    facts.grade = input.problem.grades.front().name;
  for (const GradeSpec& grade : input.problem.grades)
    if (grade.name == facts.grade) facts.grade_text = grade.text;
  if (!input.evaluations.empty()) {
    facts.started = format_date(input.evaluations.front().started_unix_ms);
    facts.wall_s = static_cast<double>(input.evaluations.back().ended_unix_ms -
                                       input.evaluations.front().started_unix_ms) /
                   1000;
  }
  facts.accepted = static_cast<int>(
      std::ranges::count(input.evaluations, Verdict::accepted, &Evaluation::verdict));
  facts.reach = make_reach(facts.cases);
  facts.headline = make_headline(facts);
  facts.reproduce = input.rerun;
  return facts;
}

}  // namespace kbeam
