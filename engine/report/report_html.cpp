// report.html: tables are written here, plots are drawn by report_page.js from the same numbers.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/check.h"
#include "model/json_forms.h"
#include "report/facts.h"
#include "report/page_assets.h"
#include "report/report.h"
#include "report/text.h"

namespace kbeam {
namespace {

// ---- data for the script ----

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
            {"reason", evaluation.reason},
            {"decision", attempt.later_attempt != 0
                             ? fmt::format("went on to attempt {}", attempt.later_attempt)
                             : attempt.decision}};
  if (attempt.candidate != nullptr) {
    form["origin"] = attempt.candidate->origin;
    form["parent"] = attempt.candidate->parent;
  }
  if (attempt.idea != nullptr) form["idea"] = idea_index.at(attempt.idea->id);
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

std::string page_data(const ReportInput& input, const ReportFacts& facts) {
  Json data{{"run",
             {{"id", input.config.run_id},
              {"problem", input.problem.name},
              {"baseline", facts.baseline}}},
            {"summary", input.summary}};
  for (const char* list : {"cases", "ladder", "families", "verdicts", "ideas", "attempts"})
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

// ---- tables ----

std::string code(const std::string& text) {
  return "<code>" + escape_html(text) + "</code>";
}

std::string cell(const std::string& html, const char* kind = "") {
  return *kind == '\0' ? "<td>" + html + "</td>"
                       : fmt::format("<td class=\"{}\">{}</td>", kind, html);
}

// `heads` with a leading '#' are numeric columns.
std::string table_head(std::initializer_list<std::string_view> heads) {
  std::string html = "<table><thead><tr>";
  for (std::string_view head : heads) {
    const bool numeric = head.starts_with('#');
    if (numeric) head.remove_prefix(1);
    html += fmt::format("<th{}>{}</th>", numeric ? " class=\"number\"" : "", head);
  }
  return html + "</tr></thead><tbody>\n";
}

std::string cases_table(const ReportFacts& facts) {
  std::string html = table_head({"case", "#baseline", "#winner", "#speed-up", "interval", "is"});
  for (const CaseFacts& row : facts.cases)
    html +=
        "<tr>" + cell(code(row.name), "name") + cell(format_time_ns(row.baseline_ns), "number") +
        cell(format_time_ns(row.candidate_ns), "number") +
        cell(format_ratio(row.speedup), "number") +
        cell(format_interval(row.low, row.high), "soft name") +
        cell(row.comparison.empty() ? "-" : escape_html(row.comparison), row.comparison.c_str()) +
        "</tr>\n";
  html += "</tbody>";
  if (!std::isnan(facts.speedup_geomean))
    html += "<tfoot><tr><td colspan=\"3\">geometric mean</td>" +
            cell(format_ratio(facts.speedup_geomean), "number") + "<td></td><td></td></tr></tfoot>";
  return html + "</table>";
}

std::string roofs_table(const ReportFacts& facts) {
  std::map<std::string, bool> names;
  for (const CaseFacts& row : facts.cases)
    if (row.ceilings != nullptr)
      for (const auto& [name, time_ns] : row.ceilings->ceiling_ns) names[name] = true;
  std::string html =
      "<table><thead><tr><th>case</th><th class=\"number\">baseline</th><th "
      "class=\"number\">winner</th>";
  for (const auto& [name, present] : names)
    html += fmt::format("<th class=\"number\">{}</th><th class=\"number\">share</th>",
                        escape_html(name));
  html += "</tr></thead><tbody>\n";
  for (const CaseFacts& row : facts.cases) {
    if (row.ceilings == nullptr) continue;
    const double winner = gflops(row.ceilings->flops, row.candidate_ns);
    html += "<tr>" + cell(code(row.name), "name") +
            cell(format_ratio(gflops(row.ceilings->flops, row.baseline_ns)), "number") +
            cell(format_ratio(winner), "number");
    for (const auto& [name, present] : names) {
      const auto found = row.ceilings->ceiling_ns.find(name);
      const double roof = found == row.ceilings->ceiling_ns.end()
                              ? std::nan("")
                              : gflops(row.ceilings->flops, found->second);
      const double share = 100 * winner / roof;
      html += cell(format_ratio(roof), "number soft") +
              cell(std::isnan(share) ? "-" : fmt::format("{:.0f} %", share), "number");
    }
    html += "</tr>\n";
  }
  return html + "</tbody></table>";
}

std::string ladder_table(const ReportFacts& facts) {
  if (facts.ladder.empty()) return "<p class=\"note\">No champion was confirmed.</p>";
  std::string html = table_head(
      {"#after", "case", "#speed-up", "interval", "family", "candidate", "#geometric mean"});
  for (const LadderFacts& rung : facts.ladder) {
    const Champion& champion = rung.step->champion;
    html += "<tr>" + cell(std::to_string(rung.step->evaluation), "number") +
            cell(code(champion.case_name), "name") +
            cell(format_ratio(champion.speedup), "number") +
            cell(format_interval(champion.low, champion.high), "soft name") +
            cell(escape_html(champion.family)) + cell(code(champion.candidate_id), "name") +
            cell(format_ratio(rung.geomean), "number") + "</tr>\n";
  }
  return html + "</tbody></table>";
}

// On a phone the chart beside it says role and best.
std::string families_table(const ReportInput& input) {
  std::string html =
      "<table><thead><tr><th>family</th><th class=\"wide\">role</th><th class=\"wide "
      "number\">best</th>"
      "<th>idea, and what became of it</th></tr></thead><tbody>\n";
  for (const FamilyState& family : input.families)
    html += "<tr>" + cell(escape_html(family.name), "name") +
            cell(family.retired ? "retired" : std::string(to_string(family.role)), "wide name") +
            cell(family.accepted > 0 ? format_ratio(family.best_speedup) : "-", "wide number") +
            cell(escape_html(family.text) +
                 (family.retired
                      ? "<br><span class=\"soft\">" + escape_html(family.retired_why) + "</span>"
                      : "")) +
            "</tr>\n";
  return html + "</tbody></table>";
}

std::string verdicts_table(const ReportFacts& facts) {
  std::string html = table_head({"verdict", "#attempts", "first reason"});
  for (const VerdictFacts& row : facts.verdicts)
    html += "<tr>" + cell(code(std::string(to_string(row.verdict))), "name") +
            cell(std::to_string(row.count), "number") + cell(escape_html(row.example), "soft") +
            "</tr>\n";
  return html + "</tbody></table>";
}

// ---- prose and lists ----

std::string term(const char* name, const std::string& html) {
  return html.empty() ? "" : fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, html);
}

std::string headline(const ReportFacts& facts) {
  if (facts.winner == nullptr || std::isnan(facts.speedup_geomean))
    return "<p class=\"headline\"><span class=\"words\">" + escape_html(facts.headline) +
           "</span></p>";
  return fmt::format(
      "<p class=\"headline\"><span class=\"figure\">{}<small>×</small></span><span "
      "class=\"words\">the speed of {}, "
      "{}. Geometric mean of paired, interleaved timings on fresh inputs; every timed output was "
      "checked.</span></p>",
      format_ratio(facts.speedup_geomean), escape_html(facts.baseline), escape_html(facts.reach));
}

std::string facts_list(const ReportInput& input, const ReportFacts& facts) {
  const Json winner = input.summary.is_object() ? input.summary.value("winner", Json()) : Json();
  std::string html = term(
      "Run", code(input.config.run_id) + (facts.started.empty() ? "" : "<br>" + facts.started));
  html += term("Machine", escape_html(input.environment.cpu));
  html += term("Threads", fmt::format("{} of {}", input.config.threads, input.environment.cpus));
  const double rate = summary_number(input.summary, "evaluations_per_minute");
  html +=
      term("Evaluations", fmt::format("{}, {} accepted", facts.attempts.size(), facts.accepted) +
                              (std::isnan(rate) ? "" : fmt::format("<br>{:.0f} a minute", rate)));
  if (facts.wall_s > 0) html += term("Ran for", format_time_s(facts.wall_s));
  html += term("Stopped", escape_html(summary_text(input.summary, "stop_reason")));
  if (facts.winner != nullptr) {
    html += term("Winner", code(facts.winner->id) + "<br>" + escape_html(facts.winner->family));
    const double error = summary_number(winner, "worst_column_error_eps");
    if (!std::isnan(error))
      html += term("Worst column", fmt::format("{:.3g} eps, limit {:.3g}", error,
                                               summary_number(winner, "limit_eps")));
    html += term("Grade", code(facts.grade));
    html += term("Assurance", code(summary_text(winner, "assurance")));
  }
  if (facts.promotion != nullptr)
    for (auto [name, text] : promotion_lines(*facts.promotion)) {
      name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
      html += term(name.c_str(), escape_html(text));
    }
  return html;
}

std::string all_cores(const ReportInput& input) {
  if (input.all_cores.empty()) return "";
  std::string html =
      "<h3>On all cores</h3><div class=\"scroll\">" +
      table_head({"case", "#threads", "#baseline", "#winner", "#speed-up", "interval", "is"});
  for (const Measurement& measurement : input.all_cores) {
    const PairedSummary& summary = measurement.summary;
    const std::string comparison(to_string(summary.comparison));
    html += "<tr>" + cell(code(measurement.case_name), "name") +
            cell(std::to_string(measurement.threads), "number") +
            cell(format_time_ns(summary.reference_ns), "number") +
            cell(format_time_ns(summary.candidate_ns), "number") +
            cell(format_ratio(summary.speedup), "number") +
            cell(format_interval(summary.low, summary.high), "soft name") +
            cell(comparison, comparison.c_str()) + "</tr>\n";
  }
  return html + "</tbody></table></div>";
}

std::string source_section(const ReportInput& input, const ReportFacts& facts) {
  if (facts.winner == nullptr) return "<p class=\"note\">There is no winner.</p>";
  // Rows of one file with other knobs show the file once.
  std::vector<const Row*> files;
  std::string html =
      "<div class=\"scroll\">" +
      table_head(
          {escape_html(input.problem.regime_axis.empty() ? "shapes" : input.problem.regime_axis),
           "file", "knobs"});
  for (const Row& row : facts.winner->rows) {
    const std::string most =
        row.axis_most == INT64_MAX ? "and above" : fmt::format("to {}", row.axis_most);
    html += "<tr>" + cell(fmt::format("{} {}", row.axis_least, most), "name") +
            cell(code(row.source_name), "name") +
            cell(row.knobs.empty() ? "<span class=\"soft\">defaults</span>"
                                   : code(describe_knobs(row.knobs))) +
            "</tr>\n";
    bool known = false;
    for (const Row* file : files) known = known || file->source == row.source;
    if (!known) files.push_back(&row);
  }
  html += "</tbody></table></div>\n";
  for (std::size_t i = 0; i < files.size(); ++i)
    html += fmt::format(
        "<details{2}><summary>{0}</summary><div class=\"sourcehead\"><span></span><button "
        "type=\"button\" "
        "class=\"copy\" data-copy=\"source-{1}\">Copy</button></div><pre class=\"tall\" "
        "id=\"source-{1}\" "
        "tabindex=\"0\">{3}</pre></details>\n",
        code(files[i]->source_name), i, files.size() == 1 ? " open" : "",
        escape_html(files[i]->source));
  return html;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string method_section(const ReportInput& input, const ReportFacts& facts) {
  const Environment& environment = input.environment;
  std::string html = "<div class=\"method\"><dl>\n";
  html += term("Compiler", escape_html(environment.compiler));
  html += term("Flags, the same for everybody", code(joined(environment.compile_flags)));
  html += term("Instruction sets", escape_html(joined(environment.instruction_sets)));
  html += term("Kernel", escape_html(environment.kernel));
  for (const auto& [name, version] : environment.libraries)
    html += term(escape_html(name).c_str(), escape_html(version));
  html += term("kbeam", escape_html(environment.tool_version)) + "</dl><dl>\n";
  html += term("Grade", code(facts.grade) + " " + escape_html(facts.grade_text));
  for (const BaselineSpec& baseline : input.problem.baselines)
    html += term("Baseline", escape_html(baseline.name + ": " + baseline.text));
  const double overhead = summary_number(input.summary, "engine_overhead_fraction");
  if (!std::isnan(overhead))
    html += term("Engine overhead", fmt::format("{:.1f} % of the wall time", 100 * overhead));
  html += term("Goal", escape_html(input.config.goal));
  html += term("Seed", std::to_string(input.config.seed));
  html += term("Problem", code(input.config.problem_hash)) + "</dl></div>\n";
  html +=
      "<div class=\"sourcehead\"><h3>Run it again</h3><button type=\"button\" class=\"copy\" "
      "data-copy=\"command\">Copy</button></div><pre id=\"command\">" +
      escape_html(facts.reproduce) + "</pre>";
  return html;
}

// Puts each slot's text in its place in one pass: text that looks like a slot stays text.
std::string fill_slots(std::string_view frame,
                       const std::map<std::string_view, std::string>& slots) {
  std::string page;
  for (;;) {
    const std::size_t open = frame.find("{{");
    page += frame.substr(0, open);
    if (open == std::string_view::npos) return page;
    const std::size_t close = frame.find("}}", open);
    const auto slot = slots.find(frame.substr(open + 2, close - open - 2));
    CHECK(slot != slots.end(), "every slot of report_page.html is filled");
    page += slot->second;
    frame.remove_prefix(close + 2);
  }
}

}  // namespace

std::string render_report_html(const ReportInput& input) {
  const ReportFacts facts = gather_facts(input);
  const std::string& title = input.problem.title.empty() ? input.problem.name : input.problem.title;
  return fill_slots(kPageFrame,
                    {{"title", escape_html(input.problem.name + ": " + facts.headline)},
                     {"style", std::string(kPageStyle)},
                     {"script", std::string(kPageScript)},
                     {"eyebrow", code(input.problem.name) + " on " +
                                     escape_html(input.config.target) + ", a kernelbeam campaign"},
                     {"heading", escape_html(title)},
                     {"headline", headline(facts)},
                     {"facts", facts_list(input, facts)},
                     {"baseline", escape_html(facts.baseline)},
                     {"cases_note", escape_html(input.problem.summary)},
                     {"cases_table", cases_table(facts)},
                     {"all_cores", all_cores(input)},
                     {"ladder_table", ladder_table(facts)},
                     {"roofs_table", roofs_table(facts)},
                     {"families_table", families_table(input)},
                     {"verdicts_table", verdicts_table(facts)},
                     {"source", source_section(input, facts)},
                     {"method", method_section(input, facts)},
                     {"data", page_data(input, facts)}});
}

}  // namespace kbeam
