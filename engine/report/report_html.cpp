// report.html: its frame filled with tables and prose; plots are drawn by report_*.js from the same
// numbers.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "report/facts.h"
#include "report/page_assets.h"
#include "report/page_parts.h"
#include "report/report.h"
#include "report/text.h"

namespace kbeam {
namespace {

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
  if (const std::string used = budgets_in_words(input.summary); !used.empty())
    html += term("Used", escape_html(used));
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

// One script from its files, in the order in which they need each other.
std::string page_script() {
  std::string script;
  for (const std::string_view part : {kScriptTools, kScriptPlots, kScriptFamilies, kScriptAttempts})
    script += part;
  return script;
}

}  // namespace

std::string render_report_html(const ReportInput& input) {
  const ReportFacts facts = gather_facts(input);
  const std::string& title = input.problem.title.empty() ? input.problem.name : input.problem.title;
  return fill_slots(kPageFrame,
                    {{"title", escape_html(input.problem.name + ": " + facts.headline)},
                     {"style", std::string(kPageStyle)},
                     {"script", page_script()},
                     {"eyebrow", code(input.problem.name) + " on " +
                                     escape_html(input.config.target) + ", a kernelbeam campaign"},
                     {"heading", escape_html(title)},
                     {"headline", headline(facts)},
                     {"facts", facts_list(input, facts)},
                     {"baseline", escape_html(facts.baseline)},
                     {"cases_note", escape_html(input.problem.summary)},
                     {"cases_table", cases_table(facts)},
                     {"all_cores", all_cores(input)},
                     {"steps", steps_section(input, facts)},
                     {"roofs_table", roofs_table(facts)},
                     {"families_table", families_table(input)},
                     {"gains_table", gains_table(facts)},
                     {"verdicts_table", verdicts_table(facts)},
                     {"source", source_section(input, facts)},
                     {"method", method_section(input, facts)},
                     {"data", page_data(input, facts)}});
}

}  // namespace kbeam
