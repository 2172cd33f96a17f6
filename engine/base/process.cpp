// fork, exec, poll. Everything that allocates happens before the fork: the parent may have threads.
#include "base/process.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/group_warden.h"

namespace kbeam {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  ~FileDescriptor() { close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  void operator=(int number) {
    close();
    number_ = number;
  }
  int get() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// What a child that could not start tells its parent.
struct StartFailure {
  enum class Step : int { folder, limits, hook, exec };
  Step step;
  int error;
};

struct ChildPlan {
  const ProcessRequest* request;
  const char* program;
  char* const* arguments;
  char* const* environment;
  int null_input;
  int output;
  int parent;  // its end of the line to the parent, and the end that it must not keep
  int end_of_parent;
};

// For an error: a command may be longer than anybody reads.
std::string joined(const std::vector<std::string>& words) {
  constexpr std::size_t kShown = 500;
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    text.append(word, 0, kShown);
    if (text.size() > kShown) return text.substr(0, kShown) + " ...";
  }
  return text;
}

std::string find_program(const ProcessRequest& request) {
  const std::string& name = request.command.front();
  if (name.find('/') != std::string::npos) return name;
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  if (const char* inherited = std::getenv("PATH")) path = inherited;
  for (const std::string& variable : request.environment)
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  while (!path.empty()) {
    const std::size_t end = std::min(path.find(':'), path.size());
    std::string candidate = std::string(path.substr(0, end)) + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return {};
}

bool set_limit(__rlimit_resource which, std::int64_t bytes) {
  if (bytes <= 0) return true;
  const rlimit limit{static_cast<rlim_t>(bytes), static_cast<rlim_t>(bytes)};
  return ::setrlimit(which, &limit) == 0;
}

bool set_limits(const ProcessRequest& request) {
  const rlimit no_core{0, 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return false;
  if (!set_limit(RLIMIT_AS, request.memory_bytes)) return false;
  if (!set_limit(RLIMIT_FSIZE, request.file_bytes)) return false;
  const sched_param lowest{};
  return !request.idle_priority || ::sched_setscheduler(0, SCHED_IDLE, &lowest) == 0;
}

[[noreturn]] void give_up(const ChildPlan& plan, StartFailure::Step step) {
  const StartFailure failure{step, errno};
  [[maybe_unused]] const ssize_t ignored = ::write(plan.parent, &failure, sizeof failure);
  ::_exit(127);
}

void restore_default_signals() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGXFSZ})
    ::sigaction(number, &default_action, nullptr);
}

// True once the parent has put the group into the warden's care; false when the parent died first.
bool may_begin(const ChildPlan& plan) {
  ::close(plan.end_of_parent);
  char word = 0;
  ssize_t heard = 0;
  do {
    heard = ::read(plan.parent, &word, 1);
  } while (heard < 0 && errno == EINTR);
  return heard == 1;
}

[[noreturn]] void become_program(const ChildPlan& plan) {
  using Step = StartFailure::Step;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!may_begin(plan)) ::_exit(127);
  restore_default_signals();
  ::dup2(plan.null_input, STDIN_FILENO);
  ::dup2(plan.output, STDOUT_FILENO);
  ::dup2(plan.output, STDERR_FILENO);
  ::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
  const ProcessRequest& request = *plan.request;
  if (!request.folder.empty() && ::chdir(request.folder.c_str()) != 0) give_up(plan, Step::folder);
  if (!set_limits(request)) give_up(plan, Step::limits);
  if (request.before_exec && !request.before_exec()) give_up(plan, Step::hook);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // again: a hook that changes credentials clears it
  ::execve(plan.program, plan.arguments, plan.environment);
  give_up(plan, Step::exec);
}

Error start_error(const ProcessRequest& request, const StartFailure& failure) {
  const std::string attempted = "run " + joined(request.command);
  const std::string reason = std::strerror(failure.error);
  switch (failure.step) {
    case StartFailure::Step::folder:
      return {ErrorCode::io, attempted, "cannot enter " + request.folder.string() + ": " + reason,
              "check that the folder exists"};
    case StartFailure::Step::limits:
      return {ErrorCode::unavailable, attempted, "cannot set its limits: " + reason,
              "compare the limits with `ulimit -a`"};
    case StartFailure::Step::hook:
      return {ErrorCode::unavailable, attempted, "its sandbox could not be set up: " + reason,
              "run `kbeam doctor`"};
    case StartFailure::Step::exec:
      break;
  }
  return {ErrorCode::not_found, attempted, reason, "install " + request.command.front()};
}

std::vector<char*> as_pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Keeps the first bytes (a compiler's first error matters most) and reads the rest away, so that
// the program does not block on a full pipe.
class OutputReader {
 public:
  OutputReader(int pipe, std::size_t limit) : pipe_(pipe), limit_(limit) {}

  bool ended() const { return ended_; }
  void read_available() {
    char chunk[16384];
    while (!ended_) {
      const ssize_t count = ::read(pipe_, chunk, sizeof chunk);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        ended_ = errno != EAGAIN;
        return;
      }
      if (count == 0) ended_ = true;
      const std::size_t kept = std::min<std::size_t>(count, limit_ - text_.size());
      text_.append(chunk, kept);
      dropped_ += static_cast<std::size_t>(count) - kept;
    }
  }
  std::string take() {
    if (dropped_ > 0) text_ += "\n[cut: " + std::to_string(dropped_) + " more bytes of output]\n";
    return std::move(text_);
  }

 private:
  int pipe_;
  std::size_t limit_;
  std::size_t dropped_ = 0;
  std::string text_;
  bool ended_ = false;
};

constexpr std::int64_t kCancelPoll_ms = 100;
constexpr std::int64_t kMostDying_ns = 60'000'000'000;

struct RunningChild {
  pid_t group;
  int end_handle;  // a pidfd
  int pipe;
  std::shared_ptr<const GroupWarden> warden;
};

// A warden that was killed leaves the group without one: the next takes over.
void replace_warden(RunningChild& child) {
  auto next = GroupWarden::of_this_process(child.group);
  if (!next.ok() || !(*next)->take(child.group)) return;
  child.warden = std::move(*next);
}

// Reads output until the child has ended, `deadline_ns` has passed or the request is cancelled;
// says whether it ended. A child that has ended stays a zombie, so that its process group number is
// still its own.
bool wait_for_end(RunningChild& child, OutputReader& output, std::int64_t deadline_ns,
                  const std::function<bool()>& cancelled) {
  const SystemClock clock;
  bool guarded = true;
  for (;;) {
    const std::int64_t left_ms = (deadline_ns - clock.monotonic_ns() + 999'999) / 1'000'000;
    if (left_ms <= 0 || (cancelled && cancelled())) return false;
    pollfd watched[3] = {{child.end_handle, POLLIN, 0},
                         {output.ended() ? -1 : child.pipe, POLLIN, 0},
                         {guarded ? child.warden->end_handle() : -1, POLLIN, 0}};
    const int wait_ms =
        static_cast<int>(std::min<std::int64_t>(left_ms, cancelled ? kCancelPoll_ms : 60'000));
    if (::poll(watched, 3, wait_ms) < 0 && errno != EINTR) return false;
    if (watched[1].revents != 0) output.read_available();
    if (watched[0].revents != 0) return true;
    if (watched[2].revents != 0) {
      const auto before = child.warden;
      replace_warden(child);
      guarded = child.warden != before;
    }
  }
}

// As fork; in the namespaces the child has the number 1, and the kernel lets it end only after all
// that it started.
pid_t fork_with_own_processes() {
  return static_cast<pid_t>(
      ::syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWPID | SIGCHLD, 0L, 0L, 0L, 0L));
}

// A killed process, too, can hang in the kernel: on a mount that does not answer, say.
bool ends_after_kill(int process_handle) {
  const SystemClock clock;
  const std::int64_t deadline_ns = clock.monotonic_ns() + kMostDying_ns;
  for (;;) {
    const std::int64_t left_ms = (deadline_ns - clock.monotonic_ns() + 999'999) / 1'000'000;
    if (left_ms <= 0) return false;
    pollfd watched{process_handle, POLLIN, 0};
    const int ready = ::poll(&watched, 1, static_cast<int>(left_ms));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

Error system_error(const ProcessRequest& request, const char* step) {
  return {ErrorCode::io, "run " + joined(request.command),
          std::string(step) + ": " + std::strerror(errno),
          "check the limits on processes and open files (`ulimit -a`)"};
}

}  // namespace

Result<ProcessOutcome> run_process(const ProcessRequest& request) {
  CHECK(!request.command.empty(), "a process needs a command");
  const std::string program = find_program(request);
  if (program.empty()) return start_error(request, {StartFailure::Step::exec, ENOENT});
  const std::vector<char*> arguments = as_pointers(request.command);
  const std::vector<char*> environment = as_pointers(request.environment);

  int output_pipe[2];
  int line[2];
  if (::pipe2(output_pipe, O_CLOEXEC) != 0) return system_error(request, "make a pipe");
  FileDescriptor output_read(output_pipe[0]), output_write(output_pipe[1]);
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line) != 0)
    return system_error(request, "make a pair of sockets");
  FileDescriptor to_child(line[0]), to_parent(line[1]);
  const FileDescriptor null_input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null_input.get() < 0) return system_error(request, "open /dev/null");
  ::fcntl(output_read.get(), F_SETFL, O_NONBLOCK);
  ASSIGN_OR_RETURN(const auto warden, GroupWarden::of_this_process());

  const SystemClock clock;
  const std::int64_t started_ns = clock.monotonic_ns();
  const ChildPlan plan{&request,         program.c_str(),    arguments.data(), environment.data(),
                       null_input.get(), output_write.get(), to_parent.get(),  to_child.get()};
  const pid_t child = request.own_processes ? fork_with_own_processes() : ::fork();
  if (child < 0 && request.own_processes)
    return start_error(request, {StartFailure::Step::hook, errno});
  if (child < 0) return system_error(request, "fork");
  if (child == 0) become_program(plan);
  ::setpgid(child, child);  // both sides set it: whoever comes first
  output_write.close();
  to_parent.close();
  warden->take(child);  // for the children that the program will have
  const char begin = 1;
  static_cast<void>(::send(to_child.get(), &begin, 1, MSG_NOSIGNAL) == 1);

  StartFailure failure{};
  ssize_t told = 0;
  do {
    told = ::read(to_child.get(), &failure, sizeof failure);
  } while (told < 0 && errno == EINTR);

  ProcessOutcome outcome;
  OutputReader output(output_read.get(), request.output_limit_bytes);
  const FileDescriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const int handle_error = errno;
  RunningChild running{child, handle.get(), output_read.get(), warden};
  bool ended = told > 0;
  if (!ended && handle.get() >= 0) {
    const auto allowed_ns = static_cast<std::int64_t>(request.timeout_s * 1e9);
    ended = wait_for_end(running, output, started_ns + allowed_ns, request.cancelled);
    outcome.timed_out = !ended;
  }
  ::kill(-child, SIGKILL);
  if (handle.get() >= 0 && !ends_after_kill(handle.get()))
    return Error{ErrorCode::unavailable, "end " + joined(request.command),
                 "it is still there a minute after SIGKILL",
                 "see what process " + std::to_string(child) + " waits for: a mount, a disk?"};
  running.warden->release(child);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.wall_s = static_cast<double>(clock.monotonic_ns() - started_ns) * 1e-9;
  if (told > 0) return start_error(request, failure);
  if (handle.get() < 0) {
    errno = handle_error;
    return system_error(request, "watch the child");
  }
  output.read_available();
  outcome.output = output.take();
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  return outcome;
}

}  // namespace kbeam
