#include "report/report.h"

#include <system_error>

#include "base/files.h"

namespace kbeam {

Result<void> write_reports(const ReportInput& input, const std::filesystem::path& folder) {
  std::error_code trouble;
  std::filesystem::create_directories(folder, trouble);
  if (trouble)
    return Error{ErrorCode::io, "write reports to " + folder.string(), trouble.message(),
                 "check free space and permissions"};
  RETURN_IF_ERROR(write_file(folder / "attempts_log.md", render_attempts_log(input)));
  return write_file(folder / "report.html", render_report_html(input));
}

}  // namespace kbeam
