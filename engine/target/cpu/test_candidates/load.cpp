// Candidates that misbehave while they are loaded: one shared object for each value of
// KBEAM_TEST_LOAD.
#include <fcntl.h>
#include <kbeam/candidate.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#define EXITS 1
#define STARTS_THREAD 2
#define STARTS_TIMER 3
#define HANGS 4
#define STOPS_ITSELF 5
#define READS_FILES 6
#define LACKS_SYMBOL 7
#define LACKS_PLAN 8
#define INSTALLS_FILTER 9
#define UNLOCKS_FILTER 10
#define REPLACES_FILTER 11
#define MOVES_FILTER 12

namespace {
int readable_files = 0;
}  // namespace

// Where the runner keeps the filter that it installs after loading (runner/system_call_filter.cpp).
[[maybe_unused]] static void* const kGuarded = reinterpret_cast<void*>(0x10000);
[[maybe_unused]] constexpr std::size_t kGuardedBytes = 0x20000;

#if KBEAM_TEST_LOAD == LACKS_SYMBOL
extern "C" void kbeam_no_such_function();
#endif

#if KBEAM_TEST_LOAD == INSTALLS_FILTER
#include <linux/filter.h>
#include <linux/seccomp.h>

static void install_filter() {
  sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  sock_fprog program{1, &pass};
  syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
#endif

__attribute__((constructor)) static void misbehave() {
#if KBEAM_TEST_LOAD == EXITS
  std::exit(0);
#elif KBEAM_TEST_LOAD == STARTS_THREAD
  std::thread([] {}).detach();
#elif KBEAM_TEST_LOAD == STARTS_TIMER
  const itimerval soon{{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &soon, nullptr);
#elif KBEAM_TEST_LOAD == HANGS
  for (;;) asm volatile("");
#elif KBEAM_TEST_LOAD == STOPS_ITSELF
  raise(SIGSTOP);
#elif KBEAM_TEST_LOAD == READS_FILES
  const std::string parent = "/proc/" + std::to_string(getppid()) + "/mem";
  for (const char* path : {"/etc/passwd", parent.c_str(), "/proc/self/mem", "/proc/self/maps"})
    if (open(path, O_RDONLY) >= 0) ++readable_files;
#elif KBEAM_TEST_LOAD == LACKS_SYMBOL
  kbeam_no_such_function();
#elif KBEAM_TEST_LOAD == INSTALLS_FILTER
  install_filter();
#elif KBEAM_TEST_LOAD == UNLOCKS_FILTER
  mprotect(kGuarded, kGuardedBytes, PROT_READ | PROT_WRITE);
#elif KBEAM_TEST_LOAD == REPLACES_FILTER
  mmap(kGuarded, kGuardedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
       0);
#elif KBEAM_TEST_LOAD == MOVES_FILTER
  void* const other = mmap(nullptr, kGuardedBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mremap(other, kGuardedBytes, kGuardedBytes, MREMAP_MAYMOVE | MREMAP_FIXED, kGuarded);
#endif
}

#if KBEAM_TEST_LOAD != LACKS_PLAN
namespace {
void nothing() {}
}  // namespace
KBEAM_PLAN(plan, args) {
  plan.note("readable", std::to_string(readable_files));
  plan.call(nothing);
}
#endif
