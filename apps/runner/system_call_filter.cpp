// The lists of system calls, and how they become two filter programs.
#include "runner/system_call_filter.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace kbeam::runner {
namespace {

constexpr std::uint32_t kTrap = SCMP_ACT_TRAP;
constexpr std::uint32_t kAllow = SCMP_ACT_ALLOW;
constexpr int kWriteFlags = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND;
constexpr int kRequestTilePermission = 0x1023;  // arch_prctl: AMX kernels ask for their registers
constexpr int kGetTilePermission = 0x1022;
// The kernel maps nothing so low by itself; whoever may not go below the end cannot touch it.
constexpr std::uintptr_t kGuardedBegin = 0x10000;
constexpr std::uintptr_t kGuardedEnd = 0x30000;
constexpr std::size_t kProgramOffset = 64;  // behind the sock_fprog that points to it
// SPEC_ALLOW: older kernels otherwise switch off speculative store bypass in a filtered process,
// and the candidate would be measured on a slower processor than its users have.
constexpr unsigned long kInstallFlags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;

// Computing, memory without execution, sleeping, looking at oneself, printing, ending.
constexpr int kAlways[] = {
    SCMP_SYS(brk),
    SCMP_SYS(clock_getres),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(close),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(fstat),
    SCMP_SYS(futex),
    SCMP_SYS(getcpu),
    SCMP_SYS(getegid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getpid),
    SCMP_SYS(getppid),
    SCMP_SYS(getrandom),
    SCMP_SYS(getrlimit),
    SCMP_SYS(getrusage),
    SCMP_SYS(gettid),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(getuid),
    SCMP_SYS(lseek),
    SCMP_SYS(madvise),
    SCMP_SYS(membarrier),
    SCMP_SYS(mremap),
    SCMP_SYS(munmap),
    SCMP_SYS(nanosleep),
    SCMP_SYS(newfstatat),
    SCMP_SYS(read),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sysinfo),
    SCMP_SYS(time),
    SCMP_SYS(times),
    SCMP_SYS(uname),
    SCMP_SYS(write),
    SCMP_SYS(writev),
};
// Reading what Landlock lets through.
constexpr int kReading[] = {
    SCMP_SYS(access),     SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(getcwd),
    SCMP_SYS(getdents64), SCMP_SYS(pread64),   SCMP_SYS(readlink),   SCMP_SYS(readlinkat),
    SCMP_SYS(stat),       SCMP_SYS(statx),
};
constexpr int kForLibraries[] = {SCMP_SYS(get_mempolicy), SCMP_SYS(mbind)};

class Builder {
 public:
  Builder() : context_(seccomp_init(kTrap)) {
    if (context_ == nullptr) return;
    // Another architecture's system call numbers mean other things: never a handler, the process
    // ends.
    check(seccomp_attr_set(context_, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
    check(seccomp_attr_set(context_, SCMP_FLTATR_CTL_OPTIMIZE, 2));
  }
  ~Builder() {
    if (context_ != nullptr) seccomp_release(context_);
  }
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  template <std::size_t kCount>
  void allow_all(const int (&calls)[kCount]) {
    for (const int call : calls) add(kAllow, call);
  }
  template <typename... Conditions>
  void add(std::uint32_t action, int call, Conditions... conditions) {
    const scmp_arg_cmp list[] = {conditions..., {}};
    check(seccomp_rule_add_array(context_, action, call, sizeof...(conditions), list));
  }
  std::vector<sock_filter> program();

 private:
  void check(int outcome) {
    if (outcome != 0) failed_ = true;
  }
  scmp_filter_ctx context_;
  bool failed_ = false;
};

// Through a pipe: the limit on file sizes is zero here, and a filter is far smaller than a pipe's
// buffer.
std::vector<sock_filter> Builder::program() {
  int ends[2];
  if (context_ == nullptr || failed_ || pipe2(ends, O_CLOEXEC) != 0) return {};
  std::vector<sock_filter> filter(4096);
  ssize_t length = -1;
  if (seccomp_export_bpf(context_, ends[1]) == 0)
    length = read(ends[0], filter.data(), filter.size() * sizeof(sock_filter));
  close(ends[0]);
  close(ends[1]);
  if (length <= 0 || length % static_cast<ssize_t>(sizeof(sock_filter)) != 0) return {};
  filter.resize(static_cast<std::size_t>(length) / sizeof(sock_filter));
  return filter;
}

scmp_arg_cmp bits(unsigned argument, std::uint64_t mask, std::uint64_t value) {
  return SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, mask, value);
}
scmp_arg_cmp equal(unsigned argument, std::uint64_t value) {
  return {argument, SCMP_CMP_EQ, value, /*datum_b=*/0};
}

void add_memory(Builder& builder, Phase phase) {
  builder.add(kAllow, SCMP_SYS(mprotect), bits(2, PROT_EXEC, 0));
  builder.add(kAllow, SCMP_SYS(mmap), bits(2, PROT_EXEC, 0));
  if (phase == Phase::loading)
    builder.add(kAllow, SCMP_SYS(mmap), bits(2, PROT_EXEC | PROT_WRITE, PROT_EXEC));
}

// Instructions ahead of a program: every call that could reach below kGuardedEnd is trapped, all
// others go on to the program. By hand, because libseccomp takes forever over these comparisons.
class GuardProgram {
 public:
  std::vector<sock_filter> before(const std::vector<sock_filter>& program) {
    for (const int call : {SYS_munmap, SYS_mprotect}) on_call(call, [&] { keep_above(0); });
    on_call(SYS_mremap, [&] {
      keep_above(0);
      load_low(3);
      // Where it is not told to, the kernel moves nothing down there.
      add(BPF_JMP | BPF_JSET | BPF_K, MREMAP_FIXED, 0, kKeepAboveSteps);
      keep_above(4);
    });
    on_call(SYS_mmap, [&] {
      load_low(3);
      add(BPF_JMP | BPF_JSET | BPF_K, MAP_FIXED, 0, kKeepAboveSteps);
      keep_above(0);
    });
    code_.insert(code_.end(), program.begin(), program.end());
    return std::move(code_);
  }

 private:
  static constexpr std::uint8_t kKeepAboveSteps = 5;

  void add(int code, std::uint32_t operand, std::uint8_t if_true = 0, std::uint8_t if_false = 0) {
    code_.push_back({static_cast<std::uint16_t>(code), if_true, if_false, operand});
  }
  static std::uint32_t argument(unsigned index) {  // its low half; the high one follows
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * index);
  }
  void load_low(unsigned index) { add(BPF_LD | BPF_W | BPF_ABS, argument(index)); }

  template <typename Body>
  void on_call(int call, const Body& body) {
    add(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
    const std::size_t jump = code_.size();
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call));
    body();
    code_[jump].jf = static_cast<std::uint8_t>(code_.size() - jump - 1);
  }
  // Goes on when the argument is an address above the guarded ones.
  void keep_above(unsigned index) {
    add(BPF_LD | BPF_W | BPF_ABS, argument(index) + 4);
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3);
    load_low(index);
    add(BPF_JMP | BPF_JGE | BPF_K, kGuardedEnd, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
  }

  std::vector<sock_filter> code_;
};

void add_files(Builder& builder, Phase phase, Libraries libraries) {
  // A read that would be refused anyway gets an error, because libraries ask politely; a write ends
  // the process.
  const bool may_read = phase == Phase::loading || libraries == Libraries::allowed;
  const std::uint32_t reading = may_read ? kAllow : SCMP_ACT_ERRNO(EACCES);
  builder.add(reading, SCMP_SYS(openat), bits(2, kWriteFlags, 0));
  builder.add(reading, SCMP_SYS(open), bits(1, kWriteFlags, 0));
  for (const int call : kReading) builder.add(reading, call);
  builder.add(SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl));  // isatty, when something is printed
  builder.add(may_read ? kAllow : SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(fcntl), equal(1, F_GETFD));
  builder.add(may_read ? kAllow : SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(fcntl), equal(1, F_GETFL));
}

void add_signals(Builder& builder) {
  const auto self = static_cast<std::uint64_t>(getpid());
  for (const int number : {SIGSTOP, SIGABRT})
    builder.add(kAllow, SCMP_SYS(tgkill), equal(0, self),
                equal(2, static_cast<std::uint64_t>(number)));
  builder.add(kAllow, SCMP_SYS(prlimit64), equal(2, 0));  // asking, not setting
  builder.add(kAllow, SCMP_SYS(arch_prctl), equal(0, kRequestTilePermission));
  builder.add(kAllow, SCMP_SYS(arch_prctl), equal(0, kGetTilePermission));
  // How the handler of a forbidden call ends the process: no handler can catch this one.
  builder.add(SCMP_ACT_KILL_PROCESS, SCMP_SYS(vhangup));
}

}  // namespace

std::vector<sock_filter> make_filter(Phase phase, Libraries libraries, const sock_fprog* next) {
  Builder builder;
  builder.allow_all(kAlways);
  add_memory(builder, phase);
  add_files(builder, phase, libraries);
  add_signals(builder);
  if (libraries == Libraries::allowed) builder.allow_all(kForLibraries);
  if (phase == Phase::loading && next != nullptr)
    builder.add(kAllow, SCMP_SYS(seccomp), equal(0, SECCOMP_SET_MODE_FILTER),
                equal(1, kInstallFlags), equal(2, reinterpret_cast<std::uintptr_t>(next)));
  const std::vector<sock_filter> program = builder.program();
  return program.empty() ? program : GuardProgram().before(program);
}

const sock_fprog* guard_filter(const std::vector<sock_filter>& filter) {
  const std::size_t bytes = filter.size() * sizeof(sock_filter);
  if (filter.empty() || kProgramOffset + bytes > kGuardedEnd - kGuardedBegin) return nullptr;
  void* const place = reinterpret_cast<void*>(kGuardedBegin);
  void* const memory = mmap(place, kGuardedEnd - kGuardedBegin, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (memory != place) return nullptr;
  auto* const code = reinterpret_cast<sock_filter*>(kGuardedBegin + kProgramOffset);
  std::memcpy(code, filter.data(), bytes);
  auto* const program = new (memory) sock_fprog{static_cast<unsigned short>(filter.size()), code};
  return mprotect(memory, kGuardedEnd - kGuardedBegin, PROT_READ) == 0 ? program : nullptr;
}

bool install_filter(const sock_fprog& program) {
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kInstallFlags, &program) == 0;
}

bool install_filter(const std::vector<sock_filter>& filter) {
  if (filter.empty()) return false;
  return install_filter(sock_fprog{static_cast<unsigned short>(filter.size()),
                                   const_cast<sock_filter*>(filter.data())});
}

}  // namespace kbeam::runner
