// A candidate that computes H = 2 A and tau = A + 1, and misbehaves on request.
#include "deeds.h"

#include <fcntl.h>
#include <kbeam/candidate.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

// Two pages past a tensor of 1000 floats: beyond its guard zone, before the next tensor.
constexpr std::int64_t kFar = 2048;

struct Call {
  Deed deed;
  std::int64_t n;
};

void twice(kbeam::Range range, const float* a, float* h) {
  for (std::int64_t i = range.begin; i < range.end; ++i) h[i] = 2 * a[i];
}
void plus_one(kbeam::Range range, const float* a, float* tau) {
  for (std::int64_t i = range.begin; i < range.end; ++i) tau[i] = a[i] + 1;
}

[[gnu::noinline]] int deepen(int depth) {
  volatile char room[4096];
  room[0] = static_cast<char>(depth);
  return depth == INT32_MAX ? 0 : deepen(depth + 1) + room[0];
}

void use_library() {
  std::vector<std::string> words;
  for (int i = 0; i < 1000; ++i) words.push_back(std::string(1000, 'x'));
  try {
    throw std::runtime_error("caught");
  } catch (const std::exception&) {
  }
  std::printf("%u %d\n", std::thread::hardware_concurrency(), isatty(1));
  std::fflush(stdout);
  const timespec pause{0, 1000};
  nanosleep(&pause, nullptr);
  if (std::FILE* file = std::fopen("/proc/cpuinfo", "r")) std::fclose(file);
  std::vector<char> large(64 << 20, 'y');
  words.back()[0] = large[large.size() / 2];
}

void bomb() {
  for (std::vector<char*> blocks;;) {
    blocks.push_back(new char[16 << 20]);
    for (int i = 0; i < 16 << 20; i += 4096) blocks.back()[i] = 1;
  }
}

void forbidden(Deed deed) {
  const itimerval soon{{0, 1000}, {0, 1000}};
  timer_t timer;
  pthread_t thread;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  char byte = 0;
  const iovec here{&byte, 1};
  sock_filter pass{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  sock_fprog program{1, &pass};
  switch (deed) {
    case Deed::start_process:
      fork();
      break;
    case Deed::start_thread:
      pthread_create(
          &thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr);
      break;
    case Deed::open_socket:
      socket(AF_UNIX, SOCK_STREAM, 0);
      break;
    case Deed::open_for_writing:
      open("/tmp/kbeam_test_candidate", O_WRONLY | O_CREAT, 0600);
      break;
    case Deed::kill_parent:
      kill(getppid(), SIGKILL);
      break;
    case Deed::stop_parent:
      syscall(SYS_tgkill, getppid(), getppid(), SIGSTOP);
      break;
    case Deed::trace_parent:
      ptrace(PTRACE_ATTACH, getppid(), nullptr, nullptr);
      break;
    case Deed::read_parent_memory:
      process_vm_readv(getppid(), &here, 1, &here, 1, 0);
      break;
    case Deed::interval_timer:
      setitimer(ITIMER_REAL, &soon, nullptr);
      break;
    case Deed::posix_timer:
      timer_create(CLOCK_MONOTONIC, nullptr, &timer);
      break;
    case Deed::alarm_clock:
      alarm(1);
      break;
    case Deed::run_program:
      execl("/bin/true", "true", nullptr);
      break;
    case Deed::change_affinity:
      sched_setaffinity(0, sizeof cpus, &cpus);
      break;
    case Deed::anonymous_file:
      memfd_create("x", 0);
      break;
    case Deed::own_filter:
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
      break;
    case Deed::own_signal_handler:
      signal(SIGSYS, SIG_IGN);
      break;
    case Deed::executable_memory:
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      break;
    case Deed::io_ring:
      syscall(SYS_io_uring_setup, 4, nullptr);
      break;
    case Deed::other_architecture:
      asm volatile("int $0x80" : : "a"(20) : "memory");
      break;
    default:
      break;
  }
}

// 1 where a file that the candidate has no business with could be opened.
float count_readable_files() {
  float count = 0;
  const std::string parent = "/proc/" + std::to_string(getppid());
  for (const std::string& path : {std::string("/etc/passwd"), parent + "/mem", parent + "/maps",
                                  std::string("/proc/self/mem")}) {
    const int descriptor = open(path.c_str(), O_RDONLY);
    if (descriptor >= 0) count += 1;
  }
  return count;
}

void misbehave(Call call, const float* a, float* h, char* scratch) {
  volatile float* output = h;
  auto* input = const_cast<volatile float*>(a);
  switch (call.deed) {
    case Deed::ordinary_library_use:
      use_library();
      break;
    case Deed::hang:
      for (;;) asm volatile("");
    case Deed::null_write:
      *reinterpret_cast<volatile int*>(std::uintptr_t{8}) = 1;
      break;
    case Deed::wild_read:
      output[0] = *reinterpret_cast<volatile float*>(std::uintptr_t{1} << 40);
      break;
    case Deed::stack_overflow:
      output[0] = static_cast<float>(deepen(0));
      break;
    case Deed::illegal_instruction:
      asm volatile(".byte 0x06");  // push es, which 64-bit mode has not
      break;
    case Deed::trap:
      __builtin_trap();
    case Deed::division_by_zero: {
      volatile int zero = 0, seven = 7;
      output[0] = static_cast<float>(seven / zero);
      break;
    }
    case Deed::abort_call:
      std::abort();
    case Deed::throw_exception:
      throw std::runtime_error("no convergence");
    case Deed::write_input:
      input[3] = 1;
      break;
    case Deed::make_input_writable: {
      const auto page = reinterpret_cast<std::uintptr_t>(a) & ~std::uintptr_t{4095};
      if (mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE) == 0) input[0] = 7;
      break;
    }
    case Deed::write_past_input:
      input[call.n] = 1;
      break;
    case Deed::write_past_output:
      output[call.n] = 1;
      break;
    case Deed::write_before_output:
      output[-1] = 1;
      break;
    case Deed::write_far_past_output:
      output[call.n + kFar] = 1;
      break;
    case Deed::read_far_past_input:
      output[0] = input[call.n + kFar];
      break;
    case Deed::write_past_scratch:
      *(volatile char*)(scratch + 4096) = 1;
      break;
    case Deed::punch_output: {
      const auto page = (reinterpret_cast<std::uintptr_t>(h) & ~std::uintptr_t{4095}) - 4096;
      madvise(reinterpret_cast<void*>(page), 4096, MADV_REMOVE);
      break;
    }
    case Deed::exit_zero:
      std::exit(0);
    case Deed::memory_bomb:
      bomb();
      break;
    case Deed::stop_itself:
      raise(SIGSTOP);
      output[0] = 99;  // in the time of the next call
      break;
    case Deed::flood_output:
      for (int line = 0; line < 100000; ++line)
        std::puts("accepted accepted accepted accepted accepted");
      break;
    case Deed::read_processor_description:
      output[0] = open("/proc/cpuinfo", O_RDONLY) >= 0 ? 1.f : 0.f;
      break;
    case Deed::remember_in_scratch: {
      volatile int* const kept = reinterpret_cast<int*>(scratch);
      output[0] = *kept == 77 ? 1.f : 0.f;
      *kept = 77;
      break;
    }
    case Deed::read_files:
      output[0] = count_readable_files();
      break;
    default:
      forbidden(call.deed);
      break;
  }
}

void describe_misplan(kbeam::Plan& plan, const kbeam::Args& args, Deed deed) {
  static std::int64_t counter = 0;
  switch (deed) {
    case Deed::plan_with_counter:
      plan.scratch<char>(64 * ++counter);
      break;
    case Deed::plan_with_unknown_tensor:
      args.input<float>("B");
      break;
    case Deed::plan_hangs:
      for (;;) asm volatile("");
    case Deed::plan_wants_huge_scratch:
      plan.scratch<char>(std::int64_t{1} << 40);
      break;
    case Deed::plan_over_memory_limit:
      plan.scratch<char>(std::int64_t{900} << 20);
      break;
    case Deed::plan_not_supported:
      plan.not_supported("only for n above 10000");
      break;
    case Deed::plan_starts_process:
      fork();
      break;
    case Deed::plan_takes_notes:
      plan.note("process", std::to_string(getpid()));
      plan.note("core", "generic\ncore");
      break;
    default:
      break;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto deed = static_cast<Deed>(args.axis("deed"));
  describe_misplan(plan, args, deed);
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  const std::int64_t n = args.axis("n");
  const auto scratch = plan.scratch<char>(4096);
  if (deed == Deed::writes_nothing) return plan.parallel_for(0, 0, twice, a, h);
  plan.parallel_for(n, 16, twice, a, h);
  plan.parallel_for(n, 0, plus_one, a, tau);
  plan.call(misbehave, Call{deed, n}, a, h, scratch);
}
