// Everything in a handler is async-signal-safe; the hint may be torn when two workers fault at
// once.
#include "runner/fault_report.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>

namespace kbeam::runner {
namespace {

using control::Fault;
using control::Region;
using control::Thrown;

constexpr std::size_t kSignalStackBytes = 64 * 1024;
constexpr std::size_t kExhaustionProbeBytes = 1 << 20;
constexpr std::uint64_t kPageFaultWrite = 2;  // bit of the x86 page fault error code

control::Page* the_page = nullptr;
std::array<WatchedRegion, 4> regions;

void name_region(Fault& fault, const std::byte* address) {
  for (const WatchedRegion& watched : regions) {
    if (watched.begin == nullptr || address < watched.begin ||
        address >= watched.begin + watched.bytes)
      continue;
    fault.region = watched.region;
    fault.offset = address - watched.begin;
  }
}

bool memory_is_exhausted() {
  void* probe = mmap(nullptr, kExhaustionProbeBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe != MAP_FAILED) munmap(probe, kExhaustionProbeBytes);
  return probe == MAP_FAILED;
}

// ud2 and ud1, which mean nothing on every x86; it was just executed, so it can be read.
std::uint32_t is_trap(const unsigned char* instruction) {
#if defined(__x86_64__)
  return instruction[0] == 0x0f && (instruction[1] == 0x0b || instruction[1] == 0xb9) ? 1 : 0;
#else
  (void)instruction;
  return 0;
#endif
}

// Runs once (SA_RESETHAND): the faulting instruction is tried again and the kernel ends the
// process.
void report_fault(int signal, siginfo_t* about, void* context) {
  Fault fault{};
  fault.signal = signal;
  fault.address = reinterpret_cast<std::uint64_t>(about->si_addr);
#if defined(__x86_64__)
  const auto* machine = static_cast<const ucontext_t*>(context);
  fault.is_write =
      (static_cast<std::uint64_t>(machine->uc_mcontext.gregs[REG_ERR]) & kPageFaultWrite) != 0;
#else
  (void)context;
#endif
  if (signal == SIGILL) fault.is_trap = is_trap(static_cast<const unsigned char*>(about->si_addr));
  name_region(fault, static_cast<const std::byte*>(about->si_addr));
  fault.memory_exhausted = memory_is_exhausted() ? 1 : 0;
  the_page->reply.fault = fault;
}

void report_forbidden_call(int, siginfo_t* about, void*) {
  Fault fault{};
  fault.signal = SIGSYS;
  fault.system_call = about->si_syscall;
  the_page->reply.fault = fault;
  syscall(SYS_vhangup);  // the filter kills for this one
  _exit(126);
}

[[noreturn]] void report_exception() {
  Fault fault{};
  fault.signal = SIGABRT;
  fault.thrown = Thrown::nothing;
  if (std::exception_ptr thrown = std::current_exception()) {
    fault.thrown = Thrown::other;
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      fault.thrown = Thrown::bad_alloc;
    } catch (const std::exception& exception) {
      [[maybe_unused]] const auto written =
          write(STDERR_FILENO, exception.what(), __builtin_strlen(exception.what()));
    } catch (...) {
    }
  }
  the_page->reply.fault = fault;
  std::abort();
}

}  // namespace

void install_fault_handlers(control::Page* page) {
  the_page = page;
  std::set_terminate(report_exception);
  struct sigaction action {};
  action.sa_sigaction = report_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
  action.sa_sigaction = report_forbidden_call;
  sigaction(SIGSYS, &action, nullptr);
}

void install_signal_stack() {
  // Never freed: a worker lives as long as the process.
  stack_t stack{};
  stack.ss_size = kSignalStackBytes;
  stack.ss_sp = std::make_unique<std::byte[]>(kSignalStackBytes).release();
  sigaltstack(&stack, nullptr);
}

void watch_region(const WatchedRegion& region) {
  regions[static_cast<std::size_t>(region.region)] = region;
}

}  // namespace kbeam::runner
