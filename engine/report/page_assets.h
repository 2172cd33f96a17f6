// The fixed parts of report.html, embedded from report_page.{html,css} and report_*.js when kbeam
// is built.
#pragma once

#include <string_view>

namespace kbeam {

extern const std::string_view kPageFrame;  // with slots: {{name}}
extern const std::string_view kPageStyle;
extern const std::string_view kScriptTools;
extern const std::string_view kScriptPlots;
extern const std::string_view kScriptFamilies;
extern const std::string_view kScriptAttempts;

}  // namespace kbeam
