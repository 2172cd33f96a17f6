// The JSON in report.html that report_*.js draws from.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "model/json_forms.h"
#include "report/facts.h"
#include "report/page_parts.h"
#include "report/text.h"

namespace kbeam {
namespace {

constexpr std::size_t kMostReason = 600;  // the archive has the rest

// JavaScript has no integer of 64 bits and no "nan": unknown numbers are null, seeds are text.
Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json();
}

Json data_of_attempt(const AttemptFacts& attempt,
                     const std::map<std::string, std::size_t>& idea_index) {
  const Evaluation& evaluation = *attempt.evaluation;
  Json speedups = Json::object();
  for (const auto& [name, summary] : attempt.per_case)
    speedups[name] = number_or_null(summary.speedup);
  std::string knobs;
  if (attempt.candidate != nullptr)
    for (const Row& row : attempt.candidate->rows)
      knobs += (knobs.empty() ? "" : "; ") + describe_knobs(row.knobs);
  Json form{{"number", attempt.number},
            {"candidate", evaluation.candidate_id},
            {"family", attempt.family()},
            {"stage", to_string(evaluation.stage)},
            {"verdict", to_string(evaluation.verdict)},
            {"geomean", attempt.geomean ? number_or_null(*attempt.geomean) : Json()},
            {"whole", attempt.covers_every_case},
            {"speedups", speedups},
            {"knobs", knobs},
            {"reason", shorten(evaluation.reason, kMostReason)},
            {"decision", attempt.later_attempt != 0
                             ? fmt::format("went on to attempt {}", attempt.later_attempt)
                             : shorten(attempt.decision, kMostReason)}};
  if (attempt.candidate != nullptr) {
    form["origin"] = attempt.candidate->origin;
    form["parent"] = attempt.candidate->parent;
  }
  if (attempt.idea != nullptr) form["idea"] = idea_index.at(attempt.idea->id);
  if (attempt.is_first) form["first"] = true;
  if (!attempt.parents.empty()) form["from"] = attempt.parents;
  if (attempt.leads_to_winner) form["line"] = true;
  if (attempt.sketch >= 0) form["sketch"] = attempt.sketch;
  return form;
}

Json data_of_case(const CaseFacts& row) {
  Json ceilings = Json::object();
  if (row.ceilings != nullptr)
    for (const auto& [name, time_ns] : row.ceilings->ceiling_ns)
      ceilings[name] = number_or_null(time_ns);
  return {{"name", row.name},
          {"baseline_ns", number_or_null(row.baseline_ns)},
          {"candidate_ns", number_or_null(row.candidate_ns)},
          {"speedup", number_or_null(row.speedup)},
          {"low", number_or_null(row.low)},
          {"high", number_or_null(row.high)},
          {"comparison", row.comparison},
          {"row", row.row},
          {"flops", row.ceilings != nullptr ? number_or_null(row.ceilings->flops) : Json()},
          {"bytes", row.ceilings != nullptr ? number_or_null(row.ceilings->bytes) : Json()},
          {"ceilings", ceilings}};
}

Json data_of_ladder(const LadderFacts& rung) {
  const Champion& champion = rung.step->champion;
  return {{"evaluation", rung.step->evaluation},
          {"case", champion.case_name},
          {"candidate", champion.candidate_id},
          {"family", champion.family},
          {"speedup", number_or_null(champion.speedup)},
          {"geomean", number_or_null(rung.geomean)},
          {"low", number_or_null(rung.low)},
          {"high", number_or_null(rung.high)}};
}

Json data_of_gains(const std::vector<GainFacts>& gains) {
  Json list = Json::array();
  for (const GainFacts& gain : gains)
    list.push_back({{"name", gain.name},
                    {"evaluations", gain.evaluations},
                    {"steps", gain.steps},
                    {"factor", number_or_null(gain.factor)}});
  return list;
}

}  // namespace

std::string page_data(const ReportInput& input, const ReportFacts& facts) {
  Json data{{"run",
             {{"id", input.config.run_id},
              {"problem", input.problem.name},
              {"baseline", facts.baseline}}},
            {"summary", input.summary}};
  for (const char* list :
       {"cases", "ladder", "families", "verdicts", "ideas", "attempts", "roles", "sketches"})
    data[list] = Json::array();
  for (const CaseFacts& row : facts.cases) data["cases"].push_back(data_of_case(row));
  for (const LadderFacts& rung : facts.ladder) data["ladder"].push_back(data_of_ladder(rung));
  for (const FamilyState& family : input.families)
    data["families"].push_back(
        {{"name", family.name},
         {"role", to_string(family.role)},
         {"evaluations", family.evaluations},
         {"accepted", family.accepted},
         {"best", family.accepted > 0 ? number_or_null(family.best_speedup) : Json()},
         {"retired", family.retired}});
  for (const RoleChange& change : input.roles)
    data["roles"].push_back(
        {{"evaluation", change.evaluation}, {"family", change.family}, {"role", change.role}});
  for (const SketchFacts& sketch : facts.sketches)
    data["sketches"].push_back({{"name", sketch.name}, {"family", sketch.family}});
  data["gains"] = {{"category", data_of_gains(facts.category_gains)},
                   {"origin", data_of_gains(facts.origin_gains)}};
  for (const VerdictFacts& row : facts.verdicts)
    data["verdicts"].push_back({{"verdict", to_string(row.verdict)}, {"count", row.count}});
  std::map<std::string, std::size_t> idea_index;
  for (const Idea& idea : input.ideas) {
    idea_index[idea.id] = data["ideas"].size();
    data["ideas"].push_back(
        {{"text", idea.text}, {"expected", idea.expected}, {"category", idea.category}});
  }
  for (const AttemptFacts& attempt : facts.attempts)
    data["attempts"].push_back(data_of_attempt(attempt, idea_index));
  return escape_json_for_script(json_text(data));
}

}  // namespace kbeam
