// The ladder as a list: each step with its gain, what it was made from, and what changed.
#include <fmt/format.h>

#include <map>
#include <string>

#include "report/ancestry.h"
#include "report/facts.h"
#include "report/page_parts.h"
#include "report/source_diff.h"
#include "report/text.h"

namespace kbeam {
namespace {

constexpr std::size_t kMostOpenSteps = 30;         // a longer list is folded
constexpr int kMostDiffLines = 300;                // of one step
constexpr std::size_t kMostDiffBytes = 1'500'000;  // of all steps together

std::string diff_html(const SourceDiff& diff, const std::string& against) {
  std::string html = fmt::format(
      "<details class=\"diff\"><summary>{} lines added, {} removed against {}</summary><pre "
      "class=\"tall\" tabindex=\"0\">",
      diff.added, diff.removed, code(against));
  int shown = 0;
  for (const DiffLine& line : diff.lines) {
    if (++shown > kMostDiffLines) break;
    const char* kind = line.sign == '+' ? "ins" : line.sign == '-' ? "del" : "span";
    if (line.sign == '@')
      html += "<span class=\"gap\">⋯</span>\n";
    else
      html += fmt::format("<{0}>{1}{2}</{0}>\n", kind, line.sign, escape_html(line.text));
  }
  html += "</pre>";
  const auto total = static_cast<int>(diff.lines.size());
  if (total > kMostDiffLines)
    html += fmt::format("<p class=\"note\">{} more lines; the archive has both sources.</p>",
                        total - kMostDiffLines);
  return html + "</details>";
}

// "16 knobs at their first values" says less than their names, so all are named.
std::string start_html(const Row& row) {
  return "new source " + code(row.source_name) +
         (row.knobs.empty() ? ", with its defaults" : ": " + code(describe_knobs(row.knobs)));
}

std::string change_html(const StepOrigin& origin, std::size_t& bytes_left) {
  if (origin.candidate == nullptr || origin.candidate->rows.empty())
    return "<span class=\"soft\">the archive does not hold this candidate</span>";
  const Row& row = origin.candidate->rows.front();
  if (origin.before == nullptr) return start_html(row);
  const Row& before = origin.before->rows.front();
  const std::string knobs = describe_knob_changes(before.knobs, row.knobs);
  const std::string against =
      (origin.is_parent ? "its parent " : "the first of its source, ") + code(origin.before->id);
  std::string html;
  if (!knobs.empty()) html += code(knobs) + " against " + against;
  if (before.source == row.source) return html.empty() ? "the same as " + against : html;
  const SourceDiff diff = diff_sources(before.source, row.source);
  std::string shown = diff_html(diff, before.source_name + " of " + origin.before->id);
  if (shown.size() > bytes_left)
    return html + fmt::format(" <span class=\"soft\">{} lines added, {} removed</span>", diff.added,
                              diff.removed);
  bytes_left -= shown.size();
  return html + shown;
}

// `before`: the champion of the case until then, null when there was none.
std::string step_html(const LadderFacts& rung, const Champion* before, const StepOrigin& origin,
                      const std::string& change) {
  const Champion& champion = rung.step->champion;
  const std::string gain =
      before == nullptr ? "the first champion"
                        : format_ratio(champion.speedup / before->speedup) + "× the one before";
  const std::string proposer =
      origin.candidate == nullptr
          ? ""
          : " <span class=\"soft\">by " + escape_html(origin.candidate->origin) + "</span>";
  return fmt::format(
      "<li><div class=\"step\"><span class=\"when\">after {}</span> <b>{}</b> "
      "<span class=\"to\">{}×</span> <span class=\"soft\">({}), {}</span>"
      "<span class=\"total\">{}× in all</span></div>"
      "<div class=\"what\"><span class=\"dot\" data-family=\"{}\"></span>{} {}{}</div>"
      "<div class=\"change\">{}</div></li>\n",
      rung.step->evaluation, code(champion.case_name), format_ratio(champion.speedup),
      format_interval(champion.low, champion.high), gain, format_ratio(rung.geomean),
      escape_html(champion.family), escape_html(champion.family), code(champion.candidate_id),
      proposer, change);
}

}  // namespace

std::string steps_section(const ReportInput& input, const ReportFacts& facts) {
  if (facts.ladder.empty()) return "<p class=\"note\">No champion was confirmed.</p>";
  std::map<std::string, const Champion*> standing;
  std::map<std::string, int> first_step;  // of each candidate
  std::size_t bytes_left = kMostDiffBytes;
  std::string list = "<ol class=\"steps\">\n";
  int number = 0;
  for (const LadderFacts& rung : facts.ladder) {
    const Champion& champion = rung.step->champion;
    const StepOrigin origin = find_step_origin(input, champion.candidate_id);
    const auto [first, is_first] = first_step.emplace(champion.candidate_id, ++number);
    const std::string change = is_first ? change_html(origin, bytes_left)
                                        : fmt::format("the candidate of step {}", first->second);
    list += step_html(rung, standing[champion.case_name], origin, change);
    standing[champion.case_name] = &champion;
  }
  list += "</ol>\n";
  if (facts.ladder.size() <= kMostOpenSteps) return list;
  return fmt::format("<details><summary>All {} steps</summary>{}</details>", facts.ladder.size(),
                     list);
}

}  // namespace kbeam
