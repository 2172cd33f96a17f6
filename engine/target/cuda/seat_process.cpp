#include "target/cuda/seat_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/defence.h"

namespace kbeam {
namespace {

constexpr std::size_t kKeptOutput = 32 * 1024;
constexpr double kKillPatienceS = 20;
constexpr int kSeatDescriptor = 3;

struct Descriptors {
  int ours = -1, theirs = -1, output_read = -1, output_write = -1;
  void close_all() const {
    for (const int each : {ours, theirs, output_read, output_write})
      if (each >= 0) ::close(each);
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void become_seat(const Descriptors& descriptors, int null, char* const* command,
                              char* const* environment) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  ::dup2(null, STDIN_FILENO);
  // Moved up first, so that no dup2 below closes what is still needed.
  const int output = ::fcntl(descriptors.output_write, F_DUPFD, 10);
  const int socket = ::fcntl(descriptors.theirs, F_DUPFD, 10);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::dup2(socket, kSeatDescriptor);
  ::close_range(kSeatDescriptor + 1, ~0u, 0);
  ::execvpe(command[0], command, environment);
  ::_exit(127);
}

Error cannot_start(const std::vector<std::string>& command, const std::string& what) {
  return {ErrorCode::io, "start a seat: " + (command.empty() ? "" : command[0]),
          what + ": " + std::strerror(errno), "check the limits on processes and open files"};
}

}  // namespace

std::vector<std::string> seat_environment(int device) {
  std::vector<std::string> environment;
  for (const char* name : {"PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "CUDA_HOME"})
    if (const char* value = std::getenv(name))
      environment.push_back(std::string(name) + "=" + value);
  // A scheduler may have given us some devices only: then ours is the device-th of those.
  std::string visible = std::to_string(device);
  if (const char* given = std::getenv("CUDA_VISIBLE_DEVICES"); given != nullptr && *given != '\0') {
    std::string rest = given;
    for (int i = 0; i < device && !rest.empty(); ++i) {
      const std::size_t comma = rest.find(',');
      rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    visible = rest.substr(0, rest.find(','));
  }
  environment.push_back("CUDA_VISIBLE_DEVICES=" + visible);
  environment.push_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  environment.push_back("CUDA_MODULE_LOADING=LAZY");
  environment.push_back("CUDA_CACHE_DISABLE=1");
  if (const char* const setting = defence_setting()) environment.emplace_back(setting);
  return environment;
}

Result<std::unique_ptr<SeatProcess>> SeatProcess::start(
    const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  Descriptors made;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return cannot_start(command, "socketpair");
  made.ours = pair[0], made.theirs = pair[1];
  if (::pipe2(pair, O_CLOEXEC) != 0) {
    made.close_all();
    return cannot_start(command, "pipe");
  }
  made.output_read = pair[0], made.output_write = pair[1];
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<std::string> words = command;
  std::vector<std::string> variables = environment;
  const std::vector<char*> word_pointers = pointers_to(words);
  const std::vector<char*> variable_pointers = pointers_to(variables);
  const pid_t pid = ::fork();
  if (pid == 0) become_seat(made, null, word_pointers.data(), variable_pointers.data());
  if (null >= 0) ::close(null);
  if (pid < 0) {
    made.close_all();
    return cannot_start(command, "fork");
  }
  ::setpgid(pid, pid);  // on both sides: whoever comes first
  ::close(made.theirs);
  ::close(made.output_write);
  return std::unique_ptr<SeatProcess>(new SeatProcess(pid, made.ours, made.output_read));
}

SeatProcess::SeatProcess(pid_t pid, int socket, int output)
    : pid_(pid), socket_(socket), output_(output), channel_(socket), reader_([this] {
        collect_output();
      }) {}

SeatProcess::~SeatProcess() {
  kill();
  if (reader_.joinable()) {
    if (reaped_)
      reader_.join();
    else
      reader_.detach();  // the process cannot be killed; its pipe never ends
  }
  ::close(socket_);
  if (reaped_) ::close(output_);
}

void SeatProcess::collect_output() {
  char block[4096];
  for (;;) {
    const ssize_t got = ::read(output_, block, sizeof(block));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    printed_.append(block, static_cast<std::size_t>(got));
    if (printed_.size() > 2 * kKeptOutput) printed_.erase(0, printed_.size() - kKeptOutput);
  }
}

bool SeatProcess::reap(double timeout_s) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_s);
  while (!reaped_) {
    const pid_t got = ::waitpid(pid_, &status_, WNOHANG);
    if (got == pid_ || (got < 0 && errno == ECHILD)) reaped_ = true;
    if (reaped_ || Clock::now() > deadline) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return reaped_;
}

bool SeatProcess::kill() {
  if (reaped_) return true;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);  // in case the group does not exist yet
  return reap(kKillPatienceS);
}

SeatEnding SeatProcess::finish(double timeout_s) {
  if (!reap(timeout_s)) kill();
  SeatEnding ending;
  if (reaped_ && WIFEXITED(status_)) ending.exit_code = WEXITSTATUS(status_);
  ending.output = output();
  return ending;
}

std::string SeatProcess::output() {
  if (!reaped_) return "";
  ::kill(-pid_, SIGKILL);  // what the group left behind would keep the pipe open
  if (reader_.joinable()) reader_.join();
  return printed_;
}

}  // namespace kbeam
