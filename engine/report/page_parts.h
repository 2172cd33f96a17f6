// The pieces that report.html is put together from, each a run of HTML or, for page_data, of JSON.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "report/facts.h"
#include "report/report.h"

namespace kbeam {

// Small things; text in them is escaped already.
std::string code(const std::string& text);  // escapes `text`
std::string cell(const std::string& html, const char* kind = "");
std::string term(const char* name, const std::string& html);  // empty without html
// `heads` with a leading '#' are numeric columns.
std::string table_head(std::initializer_list<std::string_view> heads);

std::string page_data(const ReportInput& input, const ReportFacts& facts);

std::string cases_table(const ReportFacts& facts);
std::string roofs_table(const ReportFacts& facts);
std::string families_table(const ReportInput& input);
std::string gains_table(const ReportFacts& facts);
std::string verdicts_table(const ReportFacts& facts);
std::string all_cores(const ReportInput& input);

// The ladder from the first champion to the last: what each step changed and gained.
std::string steps_section(const ReportInput& input, const ReportFacts& facts);

}  // namespace kbeam
