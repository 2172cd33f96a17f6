// The tables of report.html, which say in text what the plots beside them draw.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "report/facts.h"
#include "report/page_parts.h"
#include "report/text.h"

namespace kbeam {

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

std::string gains_table(const ReportFacts& facts) {
  std::string html =
      table_head({"kind of idea, and who proposed", "#evaluations", "#steps", "#gain"});
  for (const std::vector<GainFacts>* gains : {&facts.category_gains, &facts.origin_gains}) {
    for (const GainFacts& gain : *gains)
      html += std::string(gain.steps > 0 ? "<tr>" : "<tr class=\"soft\">") +
              cell(gains == &facts.origin_gains ? code(gain.name) : escape_html(gain.name)) +
              cell(std::to_string(gain.evaluations), "number") +
              cell(std::to_string(gain.steps), "number") +
              cell(gain.steps > 0 ? format_ratio(gain.factor) + "×" : "-", "number") + "</tr>\n";
    if (gains == &facts.category_gains) html += "</tbody><tbody class=\"part\">\n";
  }
  return html + "</tbody></table>";
}

std::string verdicts_table(const ReportFacts& facts) {
  std::string html = table_head({"verdict", "#attempts", "first reason"});
  for (const VerdictFacts& row : facts.verdicts)
    html += "<tr>" + cell(code(std::string(to_string(row.verdict))), "name") +
            cell(std::to_string(row.count), "number") +
            cell(escape_html(shorten(row.example, 300)), "soft") + "</tr>\n";
  return html + "</tbody></table>";
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

}  // namespace kbeam
