#include "apps/cli/child_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "base/private_folder.h"
#include "base/process.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostOutput = 4 << 20;
constexpr std::size_t kMostComplaint = 8 << 10;

std::vector<std::string> environment(const std::string& speaker) {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string variable = *one;
    if (!variable.starts_with("KBEAM_AS=") && !variable.starts_with("KBEAM_SOCKET="))
      variables.push_back(variable);
  }
  if (!speaker.empty()) variables.push_back("KBEAM_AS=" + speaker);
  return variables;
}

std::string last_line_of(const std::string& text) {
  const std::size_t end = text.find_last_not_of("\r\n");
  if (end == std::string::npos) return {};
  const std::size_t start = text.find_last_of('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? 0 : start + 1) + 1);
}

}  // namespace

Result<ChildOutcome> run_child_command(const ChildCommand& command) {
  std::error_code trouble;
  const fs::path self = fs::read_symlink("/proc/self/exe", trouble);
  if (trouble)
    return Error{ErrorCode::io, "find the kbeam program", trouble.message(), "mount /proc"};
  // Progress and complaints go to a file, so that stdout is the result alone.
  ASSIGN_OR_RETURN(const fs::path temporary, find_temporary_folder());
  const int errors = ::open(temporary.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (errors < 0)
    return Error{ErrorCode::io, "make a temporary file", "the folder for them is not writable",
                 "set TMPDIR"};
  ProcessRequest request{.command = {self.string()},
                         .folder = {},
                         .environment = environment(command.speaker),
                         .timeout_s = command.timeout_s};
  request.command.insert(request.command.end(), command.words.begin(), command.words.end());
  request.output_limit_bytes = kMostOutput;
  request.cancelled = command.cancelled;
  request.idle_priority = command.gives_way;
  request.before_exec = [errors] { return ::dup2(errors, STDERR_FILENO) == STDERR_FILENO; };
  Result<ProcessOutcome> ended = run_process(request);
  std::string complaint(kMostComplaint, '\0');
  const ssize_t count = ::pread(errors, complaint.data(), complaint.size(), 0);
  complaint.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  ::close(errors);
  if (!ended.ok()) return ended.error();
  ChildOutcome outcome{.exit_code = ended->exit_code, .timed_out = ended->timed_out};
  outcome.output = std::move(ended->output);
  outcome.last_line = last_line_of(outcome.output);
  outcome.complaint = complaint.empty()
                          ? "the command ended with exit code " + std::to_string(outcome.exit_code)
                          : std::move(complaint);
  return outcome;
}

}  // namespace kbeam::cli
