#include "target/cuda/planner_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/defence.h"
#include "base/process.h"
#include "target/cpu/runner.h"
#include "target/cpu/sandbox.h"

namespace kbeam {
namespace {

const char* const kSystemLibraries[] = {"/usr/lib", "/usr/lib64", "/lib", "/lib64",
                                        "/usr/local/lib"};
constexpr std::size_t kMostReplyBytes = 512UL << 20;

// The request as an anonymous file that the planner inherits.
class RequestFile {
 public:
  explicit RequestFile(const std::string& content)
      : descriptor_(memfd_create("kbeam-plan-request", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    std::size_t written = 0;
    while (descriptor_ >= 0 && written < content.size()) {
      const ssize_t step = ::write(descriptor_, content.data() + written, content.size() - written);
      if (step < 0 && errno != EINTR) break;
      if (step > 0) written += static_cast<std::size_t>(step);
    }
    constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    good_ = descriptor_ >= 0 && written == content.size() &&
            fcntl(descriptor_, F_ADD_SEALS, kSeals) == 0;
  }
  ~RequestFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  RequestFile(const RequestFile&) = delete;
  RequestFile& operator=(const RequestFile&) = delete;
  bool good() const { return good_; }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
  bool good_ = false;
};

bool take_number(std::string_view& text, char end, std::int64_t& number) {
  const auto [rest, trouble] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (trouble != std::errc() || rest == text.data() + text.size() || *rest != end) return false;
  text.remove_prefix(static_cast<std::size_t>(rest + 1 - text.data()));
  return true;
}

std::optional<PlannerFrame> take_frame(std::string_view& text) {
  if (!text.starts_with(planner_wire::kFrameStart)) return std::nullopt;
  text.remove_prefix(planner_wire::kFrameStart.size());
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  PlannerFrame frame;
  frame.kind = text.substr(0, space);
  text.remove_prefix(space + 1);
  std::int64_t bytes = 0;
  if (!take_number(text, ' ', frame.index) || !take_number(text, '\n', bytes)) return std::nullopt;
  if (bytes < 0 || text.size() < static_cast<std::size_t>(bytes) + 1) return std::nullopt;
  frame.payload = text.substr(0, static_cast<std::size_t>(bytes));
  text.remove_prefix(static_cast<std::size_t>(bytes));
  if (text.front() != '\n') return std::nullopt;
  text.remove_prefix(1);
  return frame;
}

std::vector<std::string> planner_environment() {
  std::vector<std::string> environment = {"LANG=C"};
  if (!defence_is_on(Defence::clean_environment))
    for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  if (const char* const setting = defence_setting()) environment.emplace_back(setting);
  return environment;
}

}  // namespace

PlannerRun read_frames(std::string_view reply) {
  PlannerRun run;
  while (!reply.empty()) {
    auto frame = take_frame(reply);
    if (!frame) {
      run.garbled = true;
      break;
    }
    run.frames.push_back(*std::move(frame));
  }
  return run;
}

Result<PlannerRun> run_planner(const PlannerProcess& process) {
  const RequestFile request(process.request);
  if (!request.good())
    return Error{ErrorCode::io, "hand a plan request to " + process.planner.string(),
                 std::strerror(errno), "check free memory and the limit on open files"};
  const SandboxLevel level =
      defence_is_on(Defence::process_sandbox) ? best_sandbox() : SandboxLevel::none;
  FenceRequest fence_request{.level = level,
                             .executable = {},
                             .readable = {process.module, "/etc/ld.so.cache"},
                             .memory_bytes = process.memory_bytes};
  fence_request.executable.assign(std::begin(kSystemLibraries), std::end(kSystemLibraries));
  fence_request.executable.push_back(process.planner);
  fence_request.executable.push_back(process.module);
  ASSIGN_OR_RETURN(const Fence fence, Fence::prepare(fence_request));
  const int descriptor = request.descriptor();
  ASSIGN_OR_RETURN(const ProcessOutcome outcome,
                   run_process({.command = {process.planner.string(), std::to_string(descriptor)},
                                .folder = "/",
                                .environment = planner_environment(),
                                .timeout_s = process.timeout_s,
                                .output_limit_bytes = kMostReplyBytes,
                                .cancelled = {},
                                .before_exec = [&fence, descriptor] {
                                  return fcntl(descriptor, F_SETFD, 0) == 0 &&
                                         fence.enter() == nullptr;
                                }}));
  PlannerRun run = read_frames(outcome.output);
  run.timed_out = outcome.timed_out;
  run.exit_code = outcome.exit_code;
  run.signal = outcome.signal;
  return run;
}

}  // namespace kbeam
