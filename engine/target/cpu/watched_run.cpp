// Lays the work out in two shared regions (model/watch_job.h), starts the host, reads the outcome.
#include "target/cpu/watched_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/personality.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/process.h"
#include "model/watch_job.h"
#include "target/cpu/sandbox.h"
#include "target/cpu/shared_region.h"

namespace kbeam {
namespace {

constexpr std::uint64_t kAlignment = 64;
constexpr int kFindingExitCode = 86;  // build/watch_host.cpp asks the sanitizers for it
constexpr std::size_t kMostFinding = 300;
const char* const kSystemLibraries[] = {"/usr/lib", "/usr/lib64", "/lib", "/lib64",
                                        "/usr/local/lib"};

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <std::size_t kSize>
void put_name(char (&into)[kSize], const std::string& name) {
  std::memcpy(into, name.data(), std::min(name.size(), kSize - 1));
}

// The cases with the place of every tensor, and how long the two regions must be.
struct Layout {
  std::vector<watch::Case> cases;
  std::uint64_t input_bytes = 0;
  std::uint64_t output_bytes = aligned(sizeof(watch::Progress));
};

Result<Layout> lay_out(const WatchedRequest& request) {
  Layout layout;
  layout.input_bytes = aligned(sizeof(watch::Job) + request.cases.size() * sizeof(watch::Case));
  for (const WatchedCase& given : request.cases) {
    watch::Case& laid = layout.cases.emplace_back();
    if (given.tensors.size() > watch::kMaxTensors || given.axes.size() > watch::kMaxAxes)
      return Error{ErrorCode::bad_input, "lay out a watched run",
                   fmt::format("{} tensors and {} axes", given.tensors.size(), given.axes.size()),
                   "at most 16 of each are supported"};
    for (const TensorShape& shape : given.tensors) {
      watch::Tensor& tensor = laid.tensors[laid.tensor_count++];
      put_name(tensor.name, shape.name);
      tensor.role = shape.role;
      tensor.type = shape.type;
      tensor.rank =
          static_cast<std::int32_t>(std::min<std::size_t>(shape.dims.size(), KBEAM_MAX_RANK));
      std::fill_n(tensor.dim, KBEAM_MAX_RANK, 1);
      std::copy_n(shape.dims.begin(), tensor.rank, tensor.dim);
      std::copy_n(shape.strides.begin(), tensor.rank, tensor.stride);
      tensor.bytes = static_cast<std::uint64_t>(shape.bytes());
      std::uint64_t& region = shape.role == KBEAM_OUTPUT ? layout.output_bytes : layout.input_bytes;
      tensor.offset = region;
      region += aligned(tensor.bytes);
    }
    for (const auto& [name, value] : given.axes) {
      watch::Axis& axis = laid.axes[laid.axis_count++];
      put_name(axis.name, name);
      axis.value = value;
    }
  }
  return layout;
}

void write_job(const WatchedRequest& request, const Layout& layout, std::byte* region) {
  const watch::Job job{static_cast<std::int32_t>(request.cases.size()), request.workers};
  std::memcpy(region, &job, sizeof job);
  std::memcpy(region + sizeof job, layout.cases.data(), layout.cases.size() * sizeof(watch::Case));
  for (std::size_t i = 0; i < request.cases.size(); ++i) {
    std::size_t input = 0;
    for (std::size_t t = 0; t < request.cases[i].tensors.size(); ++t) {
      const watch::Tensor& tensor = layout.cases[i].tensors[t];
      if (tensor.role == KBEAM_OUTPUT) continue;
      std::memcpy(region + tensor.offset, request.cases[i].inputs[input++].data(), tensor.bytes);
    }
  }
}

void read_outputs(const Layout& layout, const std::byte* region, WatchedOutcome& outcome) {
  for (const watch::Case& laid : layout.cases) {
    auto& outputs = outcome.outputs.emplace_back();
    for (std::int32_t t = 0; t < laid.tensor_count; ++t) {
      const watch::Tensor& tensor = laid.tensors[t];
      if (tensor.role != KBEAM_OUTPUT) continue;
      const std::byte* const begin = region + tensor.offset;
      outputs.emplace_back(begin, begin + tensor.bytes);
    }
  }
}

// "[...] in scale /tmp/x/candidate.cpp:12" -> "in scale candidate.cpp:12": the first frame below
// `from` that lies in the candidate's own text.
std::string first_place(std::string_view report, std::size_t from) {
  constexpr std::string_view kSource = "candidate.cpp:";
  while (from < report.size()) {
    const std::size_t end = std::min(report.find('\n', from), report.size());
    const std::string_view line = report.substr(from, end - from);
    const std::size_t at = line.find(kSource);
    if (line.find("    #") != std::string_view::npos && at != std::string_view::npos)
      return " at " + std::string(line.substr(at));
    from = end + 1;
  }
  return {};
}

std::string_view first_word(std::string_view text) {
  return text.substr(0, text.find_first_of(" \n"));
}

// Of an AddressSanitizer report: its kind is in the first line, the direction of the access in the
// second.
RunnerFailure explain_address(std::string_view report) {
  const std::string kind(first_word(report));
  const std::size_t read = report.find("\nREAD of size ");
  const std::size_t write = report.find("\nWRITE of size ");
  if (kind == "SEGV" || (read == std::string_view::npos && write == std::string_view::npos))
    return {kind == "SEGV" ? Verdict::crashed : Verdict::undefined_behaviour,
            kind + first_place(report, 0)};
  const bool writes = write < read;
  const std::size_t at = (writes ? write : read) + 1;
  const std::string_view access = report.substr(at, report.find(" at 0x", at) - at);
  return {writes ? Verdict::wrote_outside : Verdict::read_outside,
          fmt::format("{}, {}{}", kind, access, first_place(report, at))};
}

RunnerFailure explain_undefined(std::string_view printed, std::size_t at) {
  const std::size_t line = printed.rfind('\n', at) + 1;  // npos + 1 is 0
  std::string_view text = printed.substr(line, printed.find('\n', at) - line);
  if (const std::size_t name = text.find("candidate.cpp:"); name != std::string_view::npos)
    text.remove_prefix(name);
  return {Verdict::undefined_behaviour, std::string(text.substr(0, kMostFinding))};
}

// No cores of memory and no limit on addresses: a sanitizer reserves terabytes. Its shadow memory
// must lie where it expects it, so addresses are not random.
bool enter_watched(const Fence& fence, int inputs, int outputs) {
  return personality(ADDR_NO_RANDOMIZE) != -1 && fcntl(inputs, F_SETFD, 0) == 0 &&
         fcntl(outputs, F_SETFD, 0) == 0 && fence.enter() == nullptr;
}

RunnerFailure explain_end(const ProcessOutcome& outcome, const watch::Progress& progress) {
  if (auto finding = explain_finding(outcome.output)) return *finding;
  if (progress.refusal[0] != '\0')
    return {Verdict::bad_plan,
            std::string(progress.refusal, strnlen(progress.refusal, watch::kTextBytes))};
  const std::string how =
      outcome.signal != 0
          ? fmt::format("ended by signal {}", outcome.signal)
          : fmt::format("ended early with code {}{}", outcome.exit_code,
                        outcome.exit_code == kFindingExitCode ? ", as on a finding" : "");
  return {Verdict::crashed, how + ": " + outcome.output.substr(0, kMostFinding)};
}

}  // namespace

std::optional<RunnerFailure> explain_finding(std::string_view printed) {
  constexpr std::string_view kAddress = "ERROR: AddressSanitizer: ";
  constexpr std::string_view kUndefined = ": runtime error: ";
  constexpr std::string_view kThread = "WARNING: ThreadSanitizer: ";
  constexpr std::string_view kLeft = "LEFT BEHIND: ";  // of build/watch_host.cpp
  if (const std::size_t at = printed.find(kUndefined); at != std::string_view::npos)
    return explain_undefined(printed, at);
  if (const std::size_t at = printed.find(kAddress); at != std::string_view::npos)
    return explain_address(printed.substr(at + kAddress.size()));
  if (const std::size_t at = printed.find(kThread); at != std::string_view::npos) {
    const std::string_view report = printed.substr(at + kThread.size());
    return RunnerFailure{Verdict::race, std::string(report.substr(0, report.find(" (pid="))) +
                                            first_place(report, 0)};
  }
  if (const std::size_t at = printed.find(kLeft); at != std::string_view::npos) {
    const std::string_view rest = printed.substr(at + kLeft.size());
    return RunnerFailure{Verdict::wrote_outside, std::string(rest.substr(0, rest.find('\n')))};
  }
  return std::nullopt;
}

Result<WatchedOutcome> run_watched(const WatchedRequest& request) {
  ASSIGN_OR_RETURN(const Layout layout, lay_out(request));
  ASSIGN_OR_RETURN(SharedRegion inputs, SharedRegion::make("kbeam-watch-inputs", layout.input_bytes,
                                                           RegionAccess::runner_writes));
  ASSIGN_OR_RETURN(
      SharedRegion outputs,
      SharedRegion::make("kbeam-watch-outputs", layout.output_bytes, RegionAccess::runner_writes));
  write_job(request, layout, inputs.data());
  FenceRequest wanted{.level = best_sandbox(), .executable = {}, .readable = {}};
  wanted.executable.assign(std::begin(kSystemLibraries), std::end(kSystemLibraries));
  wanted.executable.push_back(request.build.host);
  wanted.readable = {request.build.artifact.module, "/etc/ld.so.cache"};
  ASSIGN_OR_RETURN(const Fence fence, Fence::prepare(wanted));
  ASSIGN_OR_RETURN(
      const ProcessOutcome outcome,
      run_process(
          {.command = {request.build.host.string(), request.build.artifact.module.string(),
                       std::to_string(inputs.descriptor()), std::to_string(outputs.descriptor())},
           .folder = {},
           .environment = {"LC_ALL=C"},
           .timeout_s = request.timeout_s,
           .cancelled = request.give_up,
           .before_exec = [&] {
             return enter_watched(fence, inputs.descriptor(), outputs.descriptor());
           }}));
  watch::Progress progress;
  std::memcpy(&progress, outputs.data(), sizeof progress);
  WatchedOutcome watched;
  watched.uses_parallel_for = progress.uses_parallel_for != 0;
  const auto cases = static_cast<std::int32_t>(request.cases.size());
  if (outcome.exit_code == 0 && progress.ended == cases) {
    read_outputs(layout, outputs.data(), watched);
    return watched;
  }
  watched.failed_case = static_cast<std::size_t>(std::clamp(progress.started, 1, cases) - 1);
  watched.failure =
      outcome.timed_out
          ? RunnerFailure{Verdict::timed_out,
                          fmt::format("it did not end within {:.0f} s", request.timeout_s)}
          : explain_end(outcome, progress);
  return watched;
}

}  // namespace kbeam
