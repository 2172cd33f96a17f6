#include "build/compiler_run.h"

#include <signal.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/defence.h"

namespace kbeam {
namespace {

std::string seconds(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text + " s";
}

// "a.cpp:3:5: error: no such thing" -> "a.cpp:3:5: no such thing".
std::string first_error(std::string_view log) {
  // The last two are ptxas's and nvcc's.
  constexpr std::string_view kMarks[] = {
      "fatal error: ", "error: ", "Error: ", "undefined reference to", "error   : ", "fatal   : "};
  while (!log.empty()) {
    const std::string_view line = log.substr(0, std::min(log.find('\n'), log.size()));
    for (const std::string_view mark : kMarks) {
      const std::size_t at = line.find(mark);
      if (at == std::string_view::npos) continue;
      if (mark.starts_with("undefined")) return std::string(line.substr(at));
      return std::string(line.substr(0, at)) + std::string(line.substr(at + mark.size()));
    }
    log.remove_prefix(std::min(line.size() + 1, log.size()));
  }
  return "the compiler failed without naming an error";
}

// The length of the well-formed UTF-8 character at the start of `text`, which is not empty; 0 when
// there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto continues = [&](std::size_t i) { return byte(i) >= 0x80 && byte(i) <= 0xBF; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool too_large = lead == 0xF4 && byte(1) > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
  }
  return 0;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1)
    return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
  return character.size() == 2 && first == 0xC2 && static_cast<unsigned char>(character[1]) < 0xA0;
}

bool has(std::string_view log, std::string_view words) {
  return log.find(words) != std::string_view::npos;
}

// By SIGKILL, and not by us: the compiler itself, or a pass that it reports.
bool was_killed(const ProcessOutcome& outcome) {
  return !outcome.timed_out && outcome.exit_code != 0 &&
         (outcome.signal == SIGKILL || has(outcome.output, "Killed signal terminated program"));
}

Result<ProcessOutcome> run_once(const Toolchain& toolchain, const CompilerSandbox& sandbox,
                                const CompilerRun& run) {
  BuildLimits limits = run.limits;
  if (!defence_is_on(Defence::build_limits)) limits = {3600, 0, 0};
  ASSIGN_OR_RETURN(
      auto hook,
      sandbox.confine({.read = run.read, .write = run.folder, .cpu_s = limits.timeout_s}));
  if (!defence_is_on(Defence::compiler_sandbox)) hook = nullptr;
  std::vector<std::string> command = run.arguments;
  command.insert(command.begin(), toolchain.program.string());
  return run_process({.command = std::move(command),
                      .folder = run.start_in.empty() ? run.folder : run.start_in,
                      .environment = toolchain.environment(run.folder),
                      .timeout_s = limits.timeout_s,
                      .memory_bytes = limits.memory_bytes,
                      .file_bytes = limits.output_bytes,
                      .output_limit_bytes = run.log_bytes,
                      .idle_priority = run.idle_priority,
                      .cancelled = run.cancelled,
                      .before_exec = std::move(hook)});
}

}  // namespace

Result<ProcessOutcome> run_compiler(const Toolchain& toolchain, const CompilerSandbox& sandbox,
                                    const CompilerRun& run) {
  ASSIGN_OR_RETURN(ProcessOutcome outcome, run_once(toolchain, sandbox, run));
  // The machine was short of memory, or somebody did it by hand: not the candidate's doing.
  if (!was_killed(outcome) || (run.cancelled && run.cancelled())) return outcome;
  return run_once(toolchain, sandbox, run);
}

BuildFailure explain_failure(const ProcessOutcome& outcome, const BuildLimits& limits) {
  const std::string_view log = outcome.output;
  const bool cpu_time_spent = outcome.signal == SIGXCPU || has(log, "CPU time limit exceeded");
  if (outcome.timed_out || cpu_time_spent)
    return {Verdict::build_timed_out,
            "the compiler needs more than its " + seconds(limits.timeout_s), false};
  if (has(log, "out of memory") || has(log, "virtual memory exhausted") ||
      has(log, "Cannot allocate memory") || has(log, "bad_alloc"))
    return {Verdict::build_failed,
            "the compiler needs more than its " + std::to_string(limits.memory_bytes >> 20) +
                " MiB of memory",
            false};
  if (outcome.signal == SIGXFSZ || has(log, "File size limit exceeded") ||
      has(log, "File too large"))
    return {Verdict::build_failed,
            "the object is larger than " + std::to_string(limits.output_bytes >> 20) + " MiB",
            false};
  if (was_killed(outcome))
    return {Verdict::engine_failed,
            "the compiler was killed from outside, twice (by the kernel for lack of memory, or by "
            "hand)",
            false};
  if (has(log, "No space left on device") || has(log, "Disk quota exceeded"))
    return {Verdict::engine_failed,
            "the disk that holds the build cache is full: free space there, or choose another with "
            "XDG_CACHE_HOME",
            false};
  if (outcome.signal != 0)
    return {Verdict::build_failed, "the compiler was killed by a signal", false};
  if (has(log, "internal compiler error"))
    return {Verdict::build_failed, "the compiler met an error of its own: " + first_error(log),
            true};
  return {Verdict::build_failed, first_error(log), true};
}

Built not_built(ProcessOutcome outcome, const BuildLimits& limits) {
  BuildFailure failure = explain_failure(outcome, limits);
  return {.artifact = {.verdict = failure.verdict,
                       .log = std::move(outcome.output),
                       .reason = std::move(failure.reason)},
          .repeatable = failure.repeatable};
}

Built refused(const std::string& reason, std::string log) {
  return {
      .artifact = {.verdict = Verdict::refused_object, .log = std::move(log), .reason = reason}};
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    const std::string_view character = text.substr(0, std::max<std::size_t>(length, 1));
    if (length == 0 || is_control(character))
      result += '?';
    else
      result += character;
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace kbeam
