// The sentences, by kind of death.
#include "target/cpu/explain.h"

#include <fmt/format.h>
#include <seccomp.h>
#include <signal.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace kbeam {
namespace {

using control::Fault;
using control::Region;
using control::Thrown;

constexpr std::uint64_t kNullPage = 4096;

std::string name_of_system_call(int number) {
  const std::unique_ptr<char, decltype(&std::free)> name(
      seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number), &std::free);
  return name ? fmt::format("{} (system call {})", name.get(), number)
              : fmt::format("system call {}", number);
}

std::string name_of_signal(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? fmt::format("signal {}", number) : fmt::format("SIG{}", name);
}

RunnerFailure explain_bad_access(const Incident& incident, const CallMemory& memory) {
  const Fault& hint = incident.hint;
  // Without a hint the handler could not run: the signal was blocked or the handler's stack was
  // gone.
  if (hint.signal != incident.event.number)
    return {Verdict::crashed, "used memory that it does not own, " + incident.during};
  const char* verb = hint.is_write != 0 ? "wrote" : "read";
  const std::string& during = incident.during;
  if (hint.region == Region::scratch)
    return {hint.is_write != 0 ? Verdict::wrote_outside : Verdict::crashed,
            fmt::format("{} outside its scratch memory, {}", verb, during)};
  if (hint.region == Region::inputs || hint.region == Region::outputs) {
    const Place place = memory.find_place(hint.region, hint.offset);
    if (hint.is_write == 0)
      return {Verdict::crashed, fmt::format("read {}, {}", place.text, during)};
    const bool changed_input = hint.region == Region::inputs && place.inside_tensor;
    return {changed_input ? Verdict::mutated_input : Verdict::wrote_outside,
            fmt::format("wrote {}, {}", place.text, during)};
  }
  if (hint.memory_exhausted != 0)
    return {Verdict::over_memory,
            fmt::format("memory ran out and address {:#x} was used, {}", hint.address, during)};
  if (hint.address < kNullPage)
    return {Verdict::crashed, fmt::format("{} through a null pointer, {}", verb, during)};
  return {Verdict::crashed, fmt::format("{} at address {:#x}, which it does not own, {}", verb,
                                        hint.address, during)};
}

RunnerFailure explain_abort(const Incident& incident) {
  if (incident.hint.thrown == Thrown::bad_alloc)
    return {Verdict::over_memory,
            "more memory than the limit was asked for (std::bad_alloc), " + incident.during};
  if (incident.hint.thrown == Thrown::other)
    return {Verdict::crashed, "an exception was thrown and not caught, " + incident.during};
  return {Verdict::crashed, "aborted, " + incident.during};
}

std::string explain_forbidden_call(const Incident& incident) {
  // pthread_create blocks all signals around its clone, so the runner's handler cannot say what was
  // called.
  if (incident.hint.signal != SIGSYS)
    return "made a system call that the sandbox forbids, as starting a thread does, " +
           incident.during;
  return fmt::format("called {}, which the sandbox forbids, {}",
                     name_of_system_call(incident.hint.system_call), incident.during);
}

RunnerFailure explain_kill(const Incident& incident, const CallMemory& memory) {
  const std::string& during = incident.during;
  switch (incident.event.number) {
    case SIGSYS:
      return {Verdict::broke_sandbox, explain_forbidden_call(incident)};
    case SIGSEGV:
    case SIGBUS:
      return explain_bad_access(incident, memory);
    case SIGABRT:
      return explain_abort(incident);
    case SIGILL:
      return {Verdict::crashed,
              (incident.hint.signal == SIGILL && incident.hint.is_trap != 0
                   ? "ran into a trap, which compilers put where a check failed or code must not "
                     "come (__builtin_trap, undefined behaviour), "
                   : "used an instruction that this processor lacks, ") +
                  during};
    case SIGFPE:
      return {Verdict::crashed, "divided an integer by zero, " + during};
    case SIGXFSZ:
      return {Verdict::broke_sandbox, "wrote to a file, " + during};
    case SIGXCPU:
      return {Verdict::timed_out, "used all processor time that a process may use, " + during};
    case SIGKILL:
      return {
          Verdict::engine_failed,
          "the process was killed from outside (by the kernel for lack of memory, or by hand), " +
              during};
    default:
      break;
  }
  return {Verdict::crashed,
          fmt::format("killed by {}, {}", name_of_signal(incident.event.number), during)};
}

RunnerFailure explain_event(const Incident& incident, const CallMemory& memory) {
  if (incident.event.timed_out)
    return {Verdict::timed_out,
            fmt::format("did not end within {:g} s, {}", incident.timeout_s, incident.during)};
  switch (incident.event.state) {
    case ChildState::exited:
      return {Verdict::crashed,
              fmt::format("exited early with code {}, {}", incident.event.number, incident.during)};
    case ChildState::stopped:
      return {Verdict::broke_sandbox,
              fmt::format("stopped itself with {}, {}", name_of_signal(incident.event.number),
                          incident.during)};
    case ChildState::killed:
      break;
  }
  return explain_kill(incident, memory);
}

}  // namespace

RunnerFailure explain(const Incident& incident, const CallMemory& memory) {
  RunnerFailure failure = explain_event(incident, memory);
  if (!incident.printed.empty()) failure.sentence += "; it printed: " + incident.printed;
  return failure;
}

std::string read_text(const char* text, std::size_t size) {
  std::string copy(text, strnlen(text, size));
  for (char& letter : copy)
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = ' ';
  return copy;
}

}  // namespace kbeam
