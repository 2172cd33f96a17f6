// The warden itself only makes system calls: it is forked from a process that may have threads.
#include "base/group_warden.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

namespace kbeam {
namespace {

constexpr int kMostGroups = 256;  // far more than run at one time
constexpr int kChannelSlot = 3;
constexpr int kGuardedSlot = 4;

int open_pidfd(pid_t process) {
  return static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
}

struct Care {
  pid_t groups[kMostGroups];
  int count = 0;

  void note(pid_t message) {
    const pid_t group = message < 0 ? -message : message;
    for (int i = 0; i < count; ++i)
      if (groups[i] == group) groups[i--] = groups[--count];
    if (message > 0 && count < kMostGroups) groups[count++] = group;
  }
  // Every message that has arrived, without waiting.
  void read_all() {
    pid_t message = 0;
    while (::recv(kChannelSlot, &message, sizeof message, MSG_DONTWAIT) == sizeof message)
      if (message > 1 || message < -1) note(message);
  }
};

// The inherited descriptors go: among them may be locks that must be free when their owner dies.
bool keep_only(int channel, int guarded) {
  const int moved[] = {::fcntl(channel, F_DUPFD, 16), ::fcntl(guarded, F_DUPFD, 16)};
  if (moved[0] < 0 || moved[1] < 0) return false;
  if (::dup2(moved[0], kChannelSlot) < 0 || ::dup2(moved[1], kGuardedSlot) < 0) return false;
  const int null = ::open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; ++stream) ::dup2(null, stream);
  return ::syscall(SYS_close_range, kGuardedSlot + 1, ~0U, 0U) == 0;
}

// Notes groups until the guarded process has ended. Says nothing about why it returns: what is in
// its care is to be killed either way.
void watch(int channel, pid_t guarded, Care& care) {
  const int guarded_handle = open_pidfd(guarded);
  if (guarded_handle < 0 || ::getppid() != guarded || !keep_only(channel, guarded_handle)) return;
  pollfd watched[2] = {{kChannelSlot, POLLIN, 0}, {kGuardedSlot, POLLIN, 0}};
  while (watched[1].revents == 0) {
    if (::poll(watched, 2, -1) < 0 && errno != EINTR) return;
    care.read_all();
    if ((watched[0].revents & POLLHUP) != 0) watched[0].fd = -1;
  }
  care.read_all();
}

[[noreturn]] void keep_watch(int channel, pid_t guarded, pid_t running) {
  ::setpgid(0, 0);  // a Ctrl-C at the terminal is for the guarded process
  ::prctl(PR_SET_NAME, "kbeam-warden");
  Care care;
  if (running > 1) care.note(running);
  watch(channel, guarded, care);
  for (int i = 0; i < care.count; ++i) ::kill(-care.groups[i], SIGKILL);
  ::_exit(0);
}

Error cannot_start(const char* step) {
  return {ErrorCode::io, "start the process that cleans up after a killed kbeam",
          std::string(step) + ": " + std::strerror(errno),
          "check the limits on processes and open files (`ulimit -a`)"};
}

}  // namespace

Result<std::shared_ptr<const GroupWarden>> GroupWarden::start(pid_t running) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return cannot_start("socketpair");
  const pid_t guarded = ::getpid();
  const pid_t warden = ::fork();
  if (warden == 0) keep_watch(ends[1], guarded, running);
  const int error = errno;
  ::close(ends[1]);
  const int handle = warden > 0 ? open_pidfd(warden) : -1;
  if (handle >= 0)
    return std::shared_ptr<const GroupWarden>(new GroupWarden(warden, handle, ends[0]));
  if (warden < 0) errno = error;
  const Error trouble = cannot_start(warden < 0 ? "fork" : "pidfd_open");
  ::close(ends[0]);
  return trouble;
}

bool GroupWarden::has_ended() const {
  pollfd watched{end_handle_, POLLIN, 0};
  return ::poll(&watched, 1, 0) != 0;
}

Result<std::shared_ptr<const GroupWarden>> GroupWarden::of_this_process(pid_t running) {
  static std::mutex mutex;
  static std::shared_ptr<const GroupWarden> current;
  static pid_t owner = 0;  // a forked copy of this process needs a warden of its own
  const std::lock_guard guard(mutex);
  if (!current || owner != ::getpid() || current->has_ended()) {
    if (current && owner == ::getpid()) ::waitpid(current->process_id_, nullptr, WNOHANG);
    ASSIGN_OR_RETURN(current, start(running));
    owner = ::getpid();
  }
  return current;
}

bool GroupWarden::take(pid_t group) const {
  return ::send(channel_, &group, sizeof group, MSG_NOSIGNAL) == sizeof group;
}

void GroupWarden::release(pid_t group) const {
  const pid_t message = -group;
  static_cast<void>(::send(channel_, &message, sizeof message, MSG_NOSIGNAL) >= 0);
}

GroupWarden::~GroupWarden() {
  ::close(channel_);
  ::close(end_handle_);
}

}  // namespace kbeam
