// The fixed parts of report.html, embedded from report_page.{html,css,js} when kbeam is built.
#pragma once

#include <string_view>

namespace kbeam {

extern const std::string_view kPageFrame;  // with slots: {{name}}
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace kbeam
