#include "report/page_parts.h"

#include <fmt/format.h>

#include "report/text.h"

namespace kbeam {

std::string code(const std::string& text) {
  return "<code>" + escape_html(text) + "</code>";
}

std::string cell(const std::string& html, const char* kind) {
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

std::string term(const char* name, const std::string& html) {
  return html.empty() ? "" : fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, html);
}

}  // namespace kbeam
