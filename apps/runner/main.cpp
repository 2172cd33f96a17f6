// kbeam-runner: the process that a candidate lives in. Maps what the judge gave it, makes its
// threads, closes the doors behind itself, and only then loads the candidate. It stops itself after
// every command and has no clock, no expected values and no verdict.
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/defence.h"
#include "runner/candidate_host.h"
#include "runner/fault_report.h"
#include "runner/system_call_filter.h"
#include "target/cpu/control_page.h"

namespace kbeam::runner {
namespace {

constexpr int kMostArenas = 8;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(125);
}

std::byte* map_descriptor(int descriptor, std::size_t bytes, int protection) {
  void* memory = mmap(nullptr, bytes, protection, MAP_SHARED, descriptor, 0);
  if (memory == MAP_FAILED) give_up("map shared memory");
  close(descriptor);
  return static_cast<std::byte*>(memory);
}

// Between guards: what a neighbour of the scratch memory would be is nobody's.
std::byte* map_scratch(std::size_t bytes) {
  void* space = mmap(nullptr, bytes + 2 * kScratchGuard, outside_access(),
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space == MAP_FAILED) give_up("reserve scratch memory");
  std::byte* const begin = static_cast<std::byte*>(space) + kScratchGuard;
  if (mmap(begin, bytes, outside_access(), MAP_SHARED | MAP_FIXED, control::kScratchFd, 0) ==
      MAP_FAILED)
    give_up("map scratch memory");
  close(control::kScratchFd);
  return begin;
}

void pin_worker(const control::Settings& settings, int worker) {
  // With a processor for every worker each gets its own; otherwise all share the set of the
  // process.
  if (settings.cpu_count < settings.workers) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(settings.cpus[worker]), &one);
  sched_setaffinity(0, sizeof one, &one);
}

// The judge sees this in waitid and wakes the process with SIGCONT. A direct system call: nothing
// to interpose.
void stop() {
  syscall(SYS_tgkill, getpid(), static_cast<pid_t>(syscall(SYS_gettid)), SIGSTOP);
}

struct Filters {
  std::vector<sock_filter> loading;
  const sock_fprog* running = nullptr;
};

Filters make_filters(const control::Settings& settings) {
  if (settings.filter_system_calls == 0) return {};
  const Libraries libraries =
      settings.may_use_libraries != 0 ? Libraries::allowed : Libraries::none;
  Filters filters;
  filters.running = guard_filter(make_filter(Phase::running, libraries));
  if (filters.running == nullptr) give_up("keep the second system call filter out of reach");
  filters.loading = make_filter(Phase::loading, libraries, filters.running);
  if (filters.loading.empty()) give_up("build the system call filter");
  return filters;
}

[[noreturn]] void serve(control::Page& page) {
  // Every further arena of malloc reserves 64 MiB, and address space is what the memory limit
  // counts.
  mallopt(M_ARENA_MAX, kMostArenas);
  const HostMemory memory{
      map_descriptor(control::kInputFd, page.settings.input_bytes, input_access()),
      map_descriptor(control::kOutputFd, page.settings.output_bytes, PROT_READ | PROT_WRITE),
      map_scratch(page.settings.scratch_bytes)};
  install_fault_handlers(&page);
  const Filters filters = make_filters(page.settings);
  // The C library prepares itself at the first thread; afterwards a candidate's attempt shows as
  // what it is.
  std::thread([] {}).join();
  WorkerTeam team(page.settings.workers);
  team.run([&](int worker) {
    pin_worker(page.settings, worker);
    install_signal_stack();
  });
  CandidateHost host(page, memory, team);
  const rlimit none{0, 0};
  if (defence_is_on(Defence::system_call_filter))
    setrlimit(RLIMIT_NPROC, &none);  // a second lock on fork, where the user is not root
  if (page.settings.filter_system_calls != 0 && !install_filter(filters.loading))
    give_up("install the system call filter");
  stop();

  const std::uint64_t sequence = page.request.sequence;
  const bool loaded = host.load();
  if (loaded && page.settings.filter_system_calls != 0 && !install_filter(*filters.running))
    give_up("install the second system call filter");
  page.reply.status = loaded ? control::Status::done : control::Status::cannot_load;
  page.reply.sequence = sequence;
  for (;;) {
    stop();
    const control::Request request = page.request;
    host.serve(request);
  }
}

}  // namespace
}  // namespace kbeam::runner

int main() {
  // Nobody but root may look into this process; exec has reset what the launcher set.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  using kbeam::control::Page;
  auto* page = reinterpret_cast<Page*>(
      kbeam::runner::map_descriptor(kbeam::control::kPageFd, sizeof(Page), PROT_READ | PROT_WRITE));
  kbeam::runner::serve(*page);
}
