// fork, fence, exec; then SIGCONT and waitid.
#include "target/cpu/launcher.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <utility>

#include "base/defence.h"
#include "target/cpu/control_page.h"

namespace kbeam {
namespace {

constexpr int kTroubleFd = 7;     // tells the judge why exec did not happen; closed by exec
constexpr int kFirstFreeFd = 64;  // descriptors are moved up here before they take their places
constexpr std::size_t kMostPrinted =
    400;  // characters of the child's output that a sentence can hold

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Error cannot_launch(const std::string& what) {
  return {ErrorCode::unavailable, "start the process of a candidate",
          what + ": " + std::strerror(errno), "run kbeam doctor to see what this machine offers"};
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  ~Pipe() {
    if (read_end >= 0) close(read_end);
    if (write_end >= 0) close(write_end);
  }
  int take_read_end() { return std::exchange(read_end, -1); }
  void close_write_end() { close(std::exchange(write_end, -1)); }
};

bool open_pipe(Pipe& pipe, int flags) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | flags) != 0) return false;
  pipe.read_end = ends[0];
  pipe.write_end = ends[1];
  return true;
}

// Everything that the child needs after fork, laid out before it: no allocation happens in the
// child.
struct ChildPlan {
  const char* runner;
  const Fence* fence;
  bool pinned;
  cpu_set_t cpus;
  int descriptors[kTroubleFd + 1];  // by the number that each gets; all close-on-exec copies
  pid_t parent;
};

struct Trouble {
  int number;
  char step[60];
};

void close_from(unsigned first) {
  if (syscall(SYS_close_range, first, ~0u, 0u) == 0) return;
  const long most = sysconf(_SC_OPEN_MAX);
  for (long descriptor = first; descriptor < most && descriptor < 65536; ++descriptor)
    close(static_cast<int>(descriptor));
}

void reset_signals() {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) sigaction(number, &usual, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool place_descriptors(const ChildPlan& plan) {
  int moved[kTroubleFd + 1];
  for (int number = 0; number <= kTroubleFd; ++number) {
    moved[number] = fcntl(plan.descriptors[number], F_DUPFD_CLOEXEC, kFirstFreeFd);
    if (moved[number] < 0) return false;
  }
  for (int number = 0; number <= kTroubleFd; ++number)
    if (dup3(moved[number], number, number == kTroubleFd ? O_CLOEXEC : 0) != number) return false;
  return true;
}

// Runs between fork and exec; only async-signal-safe calls. `trouble` follows the pipe to the
// judge.
const char* become_runner(const ChildPlan& plan, int& trouble) {
  reset_signals();
  if (setsid() < 0) return "new session";
  if (plan.pinned && sched_setaffinity(0, sizeof plan.cpus, &plan.cpus) != 0)
    return "pin to the processors";
  // Before the limit on open files: the moved descriptors are above it.
  if (!place_descriptors(plan)) return "place the descriptors";
  trouble = kTroubleFd;
  if (const char* step = plan.fence->enter()) return step;
  close_from(kTroubleFd + 1);
  // A change of credentials clears this, so it comes after the namespaces.
  if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return "die with the parent";
  // The parent may have died before that took effect.
  if (getppid() != plan.parent) return "find the parent alive";
  static const char* const kArguments[] = {"kbeam-runner", nullptr};
  static const char* const kEnvironment[] = {"LANG=C", "OPENBLAS_NUM_THREADS=1",
                                             "OMP_NUM_THREADS=1", defence_setting(), nullptr};
  char* const* const environment =
      defence_is_on(Defence::clean_environment) ? const_cast<char* const*>(kEnvironment) : environ;
  execve(plan.runner, const_cast<char* const*>(kArguments), environment);
  return "exec the runner";
}

[[noreturn]] void run_child(const ChildPlan& plan) {
  int descriptor = plan.descriptors[kTroubleFd];
  const char* step = become_runner(plan, descriptor);
  Trouble trouble{errno, {}};
  std::strncpy(trouble.step, step, sizeof trouble.step - 1);
  _exit(write(descriptor, &trouble, sizeof trouble) < 0 ? 126 : 127);
}

// fork with signals held back, so that no handler of the judge runs in the child.
pid_t fork_child(const ChildPlan& plan) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = fork();
  if (child == 0) run_child(plan);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return child;
}

void reap(pid_t child) {
  siginfo_t about{};
  while (waitid(P_PID, static_cast<id_t>(child), &about, WEXITED) != 0 && errno == EINTR) {
  }
}

}  // namespace

Result<std::unique_ptr<Child>> Child::launch(const LaunchRequest& request) {
  ASSIGN_OR_RETURN(const Fence fence, Fence::prepare(request.fence));
  Pipe output, trouble;
  // Non-blocking: a flood of output is lost once the pipe is full; it never blocks the child or
  // grows.
  if (!open_pipe(output, O_NONBLOCK) || !open_pipe(trouble, 0)) return cannot_launch("pipe");
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null < 0) return cannot_launch("open /dev/null");

  ChildPlan plan{};
  plan.runner = request.runner.c_str();
  plan.fence = &fence;
  plan.pinned = !request.cpus.empty();
  CPU_ZERO(&plan.cpus);
  for (const int cpu : request.cpus) CPU_SET(static_cast<std::size_t>(cpu), &plan.cpus);
  plan.parent = getpid();
  const int descriptors[] = {null,
                             output.write_end,
                             output.write_end,
                             request.page_descriptor,
                             request.input_descriptor,
                             request.output_descriptor,
                             request.scratch_descriptor,
                             trouble.write_end};
  std::copy(std::begin(descriptors), std::end(descriptors), plan.descriptors);

  const pid_t process = fork_child(plan);
  close(null);
  if (process < 0) return cannot_launch("fork");
  output.close_write_end();
  trouble.close_write_end();
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (pidfd < 0) {
    const Error error = cannot_launch("pidfd_open");
    kill(process, SIGKILL);
    reap(process);
    return error;
  }
  std::unique_ptr<Child> child(new Child(process, pidfd, output.take_read_end()));
  Trouble found{};
  ssize_t length = 0;
  while ((length = read(trouble.read_end, &found, sizeof found)) < 0 && errno == EINTR) {
  }
  if (length == 0) return child;
  errno = found.number;
  found.step[sizeof found.step - 1] = '\0';
  return cannot_launch(length == sizeof found ? found.step : "the child ended before exec");
}

Child::Child(pid_t process_id, int pidfd, int output)
    : process_id_(process_id),
      pidfd_(pidfd),
      output_(output),
      watchdog_(std::make_unique<Watchdog>(pidfd)) {}

Child::~Child() {
  end();
  watchdog_.reset();
  close(pidfd_);
  close(output_);
}

void Child::end() {
  if (gone_) return;
  gone_ = true;
  // The zombie still holds its group id, so the whole group is signalled before it is reaped.
  kill(-process_id_, SIGKILL);
  kill(process_id_, SIGKILL);
  reap(process_id_);
}

ChildEvent Child::await(double timeout_s) {
  watchdog_->arm(timeout_s);
  return wait_for_stop(now_ns());
}

ChildEvent Child::resume(double timeout_s) {
  watchdog_->arm(timeout_s);
  const std::int64_t begin_ns = now_ns();
  kill(process_id_, SIGCONT);
  return wait_for_stop(begin_ns);
}

ChildEvent Child::wait_for_stop(std::int64_t begin_ns) {
  siginfo_t about{};
  int outcome = 0;
  do {
    outcome = waitid(P_PID, static_cast<id_t>(process_id_), &about, WSTOPPED | WEXITED | WNOWAIT);
  } while (outcome != 0 && errno == EINTR);
  const std::int64_t end_ns = now_ns();
  ChildEvent event;
  event.wall_ns = end_ns - begin_ns;
  event.timed_out = watchdog_->disarm();
  event.number = about.si_status;
  event.state = about.si_code == CLD_STOPPED  ? ChildState::stopped
                : about.si_code == CLD_EXITED ? ChildState::exited
                                              : ChildState::killed;
  if (event.state != ChildState::stopped || event.timed_out) end();
  return event;
}

std::optional<ChildStatus> Child::status() const {
  std::ifstream file(fmt::format("/proc/{}/status", process_id_));
  if (!file) return std::nullopt;
  ChildStatus status;
  for (std::string word; file >> word;) {
    if (word == "Threads:") file >> status.threads;
    if (word == "Seccomp:") file >> status.seccomp_mode;
    if (word == "Seccomp_filters:") file >> status.seccomp_filters;
    if (word == "NoNewPrivs:") file >> status.no_new_privileges;
  }
  return status;
}

std::string Child::printed() const {
  char buffer[4096];
  std::string text;
  for (ssize_t length = 0; (length = read(output_, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(length));
    if (text.size() > 2 * kMostPrinted) text.erase(0, text.size() - kMostPrinted);
  }
  if (text.size() > kMostPrinted) text.erase(0, text.size() - kMostPrinted);
  for (char& letter : text)
    if (letter < ' ' || letter > '~') letter = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

}  // namespace kbeam
