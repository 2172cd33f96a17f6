// Everything that allocates happens before the fork; what runs after it only makes system calls.
#include "propose/agent_sandbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "base/files.h"
#include "base/private_folder.h"
#include "base/process.h"
#include "model/sandbox_choice.h"

namespace kbeam {

namespace fs = std::filesystem;

struct AgentSandbox::Plan {
  struct Mount {
    std::string source;
    std::string target;  // below the root
    bool writable = false;
  };
  std::string root;
  std::vector<std::string> folders;                         // in this order
  std::vector<std::string> files;                           // to mount files on
  std::vector<std::pair<std::string, std::string>> links;   // what it says, where
  std::vector<std::pair<std::string, std::string>> copies;  // files: from, to
  std::vector<Mount> mounts;
  std::string proc;
  std::string user_map;
  std::string group_map;
  bool network = false;
};

namespace {

using Plan = AgentSandbox::Plan;

constexpr char kHome[] = "/home/agent";
constexpr int kNobody = 65534;
constexpr int kMostProcesses = 256;
constexpr long kWatch_ns = 100'000'000;
constexpr rlim_t kMostFileBytes = rlim_t{256} << 20;
// Of the workspace and all else that is written in the room: it is memory, and goes with the room
// at once, however much and deep an agent piled up in it.
constexpr char kRoomLimits[] = "size=512m,nr_inodes=50000,mode=755";

// ---- in the child

bool write_whole(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  ::close(file);
  return written;
}

bool copy_file(const char* source, const char* target) {
  const int from = ::open(source, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  const int to = ::open(target, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  ssize_t step = from < 0 || to < 0 ? -1 : 1;
  while (step > 0 || (step < 0 && from >= 0 && to >= 0 && errno == EINTR))
    step = ::sendfile(to, from, nullptr, std::size_t{1} << 30);
  if (from >= 0) ::close(from);
  if (to >= 0) ::close(to);
  return step == 0;
}

// No file lends anybody its owner's rights, whatever is written there.
bool restrict_mount(const char* target, bool writable) {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_NOSUID | (writable ? 0 : MOUNT_ATTR_RDONLY);
  return ::syscall(SYS_mount_setattr, AT_FDCWD, target, AT_RECURSIVE, &attributes,
                   sizeof attributes) == 0;
}

bool furnish(const Plan& plan) {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (::mount("room", plan.root.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, kRoomLimits) != 0)
    return false;
  for (const std::string& folder : plan.folders)
    if (::mkdir(folder.c_str(), 0755) != 0 && errno != EEXIST) return false;
  for (const std::string& file : plan.files) {
    const int made = ::open(file.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (made < 0) return false;
    ::close(made);
  }
  for (const auto& [says, where] : plan.links)
    if (::symlink(says.c_str(), where.c_str()) != 0) return false;
  for (const auto& [from, to] : plan.copies)
    if (!copy_file(from.c_str(), to.c_str())) return false;
  for (const Plan::Mount& one : plan.mounts) {
    if (::mount(one.source.c_str(), one.target.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
      return false;
    if (!restrict_mount(one.target.c_str(), one.writable)) return false;
  }
  // Refused where the system's own is not whole, as in some containers: then there is none.
  static_cast<void>(
      ::mount("proc", plan.proc.c_str(), "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) == 0);
  if (::chdir(plan.root.c_str()) != 0 || ::syscall(SYS_pivot_root, ".", ".") != 0) return false;
  return ::umount2(".", MNT_DETACH) == 0 && ::chdir("/workspace") == 0;
}

int count_processes() {
  const int folder = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return 0;
  alignas(8) char entries[4096];
  int count = 0;
  for (;;) {
    const long bytes = ::syscall(SYS_getdents64, folder, entries, sizeof entries);
    if (bytes <= 0) break;
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9') ++count;
      at += entry->d_reclen;
    }
  }
  ::close(folder);
  return count;
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// The first process of the room: when it ends, the kernel kills the others.
[[noreturn]] void keep_house(pid_t agent) {
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  const int null = ::open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; ++stream) ::dup2(null, stream);
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  for (;;) {
    const timespec wait{0, kWatch_ns};
    ::sigtimedwait(&child_ended, nullptr, &wait);
    int status = 0;
    for (pid_t ended = 0; (ended = ::waitpid(-1, &status, WNOHANG)) > 0;)
      if (ended == agent) ::_exit(exit_code_of(status));
    if (count_processes() > kMostProcesses) ::_exit(kTooManyProcesses);
  }
}

bool limit(decltype(RLIMIT_AS) what, rlim_t most) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return false;
  const rlim_t bounded = std::min(most, now.rlim_max);
  const rlimit wanted{bounded, bounded};
  return ::setrlimit(what, &wanted) == 0;
}

bool become_agent() {
  ::setsid();  // it may signal its own group without hitting those who keep the room
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  return limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, kMostFileBytes) &&
         ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

// Called by the first process of the room, which waits for the agent: that alone returns (so does
// whoever fails).
bool enter(const Plan& plan) {
  if (::getpid() != 1) return false;  // ProcessRequest::own_processes was forgotten
  write_whole("/proc/self/oom_score_adj", "1000");
  const int network = plan.network ? 0 : CLONE_NEWNET;
  if (::unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | network) != 0) return false;
  if (!write_whole("/proc/self/setgroups", "deny") ||
      !write_whole("/proc/self/uid_map", plan.user_map) ||
      !write_whole("/proc/self/gid_map", plan.group_map))
    return false;
  if (!furnish(plan)) return false;
  sigset_t child_ended;
  ::sigemptyset(&child_ended);
  ::sigaddset(&child_ended, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child_ended, nullptr);
  const pid_t agent = ::fork();
  if (agent < 0) return false;
  if (agent > 0) keep_house(agent);
  return become_agent();
}

// ---- before the fork

class PlanMaker {
 public:
  explicit PlanMaker(const fs::path& root) {
    plan_->root = root.string();
    plan_->proc = inside("/proc");
    plan_->user_map = std::to_string(kNobody) + " " + std::to_string(::geteuid()) + " 1";
    plan_->group_map = std::to_string(kNobody) + " " + std::to_string(::getegid()) + " 1";
  }

  void folder(const fs::path& path) {
    fs::path whole;
    for (const fs::path& part : path.relative_path()) {
      whole /= part;
      plan_->folders.push_back(inside(whole));
    }
  }
  // Nothing where the system has no such path.
  void offer(const fs::path& source) {
    std::error_code trouble;
    if (fs::is_symlink(source, trouble)) {
      folder(source.parent_path());
      plan_->links.push_back({fs::read_symlink(source, trouble).string(), inside(source)});
    } else if (fs::exists(source, trouble)) {
      bind(source, source, false);
    }
  }
  void bind(const fs::path& source, const fs::path& target, bool writable) {
    std::error_code trouble;
    if (fs::is_directory(source, trouble)) {
      folder(target);
    } else {
      folder(target.parent_path());
      plan_->files.push_back(inside(target));
    }
    plan_->mounts.push_back({source.string(), inside(target), writable});
  }
  // Its files and folders; a link in it is left out.
  Result<void> copy(const fs::path& source, const fs::path& target) {
    std::error_code trouble;
    folder(target);
    for (auto at = fs::recursive_directory_iterator(source, trouble);
         !trouble && at != fs::recursive_directory_iterator(); at.increment(trouble)) {
      const fs::path place = target / at->path().lexically_relative(source);
      const fs::file_status status = at->symlink_status(trouble);
      if (fs::is_directory(status)) folder(place);
      if (fs::is_regular_file(status))
        plan_->copies.emplace_back(at->path().string(), inside(place));
    }
    if (!trouble) return {};
    return Error{ErrorCode::io, "take " + source.string() + " into a room", trouble.message(),
                 "check its permissions"};
  }
  void link(const std::string& says, const fs::path& where) {
    plan_->links.push_back({says, inside(where)});
  }
  void allow_network() { plan_->network = true; }
  std::shared_ptr<const Plan> finish() {
    // Folders before what is mounted on them; a folder comes as often as it is named.
    std::stable_sort(plan_->folders.begin(), plan_->folders.end());
    return plan_;
  }

 private:
  std::string inside(const fs::path& path) const {
    return (fs::path(plan_->root) / path.relative_path()).string();
  }
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
};

void offer_system(PlanMaker& maker, bool network) {
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"}) maker.offer(path);
  for (const char* path :
       {"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives",
        "/etc/localtime", "/etc/nsswitch.conf", "/etc/passwd", "/etc/group"})
    maker.offer(path);
  if (network)
    for (const char* path :
         {"/etc/resolv.conf", "/etc/hosts", "/etc/ssl", "/etc/ca-certificates", "/etc/pki"})
      if (std::error_code trouble; fs::exists(path, trouble))
        maker.bind(fs::canonical(path, trouble), path, false);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    maker.bind(device, device, true);
  for (const char* folder : {"/proc", "/tmp", "/dev/shm", "/run/kbeam", kHome})
    maker.folder(folder);
  maker.link("/proc/self/fd", "/dev/fd");
}

fs::path outside_path(const std::string& granted) {
  if (!granted.starts_with("~/")) return granted;
  const char* const home = std::getenv("HOME");
  return fs::path(home == nullptr ? "/" : home) / granted.substr(2);
}
fs::path inside_path(const std::string& granted) {
  return granted.starts_with("~/") ? fs::path(kHome) / granted.substr(2) : fs::path(granted);
}

Result<void> grant(PlanMaker& maker, const std::vector<std::string>& paths, bool writable) {
  for (const std::string& path : paths) {
    std::error_code trouble;
    const fs::path source = fs::canonical(outside_path(path), trouble);
    if (trouble || inside_path(path).is_relative())
      return Error{ErrorCode::bad_input, "grant an agent " + path,
                   trouble ? trouble.message() : "it is no absolute path",
                   "correct the path, or take it from what the agent is granted"};
    maker.bind(source, inside_path(path), writable);
  }
  return {};
}

}  // namespace

Result<void> check_grants(const AgentAccess& access) {
  PlanMaker maker("/");
  RETURN_IF_ERROR(grant(maker, access.read, false));
  return grant(maker, access.write, true);
}

Result<AgentSandbox> AgentSandbox::prepare(const AgentRoom& room) {
  PlanMaker maker(room.root);
  offer_system(maker, room.access.network);
  if (room.access.network) maker.allow_network();
  RETURN_IF_ERROR(maker.copy(room.workspace, "/workspace"));
  maker.bind(room.socket, "/run/kbeam/socket", true);
  maker.bind(room.kbeam, "/opt/kbeam/bin/kbeam", false);
  RETURN_IF_ERROR(grant(maker, room.access.read, false));
  RETURN_IF_ERROR(grant(maker, room.access.write, true));
  AgentSandbox sandbox;
  sandbox.plan_ = maker.finish();
  sandbox.environment_ = {
      std::string("PATH=/opt/kbeam/bin:") + kHome + "/.local/bin:/usr/local/bin:/usr/bin:/bin",
      std::string("HOME=") + kHome,
      "TMPDIR=/tmp",
      "LANG=C.UTF-8",
      "TERM=dumb",
      std::string(kAgentSocketVariable) + "=/run/kbeam/socket"};
  for (const std::string& name : room.access.environment)
    if (const char* value = std::getenv(name.c_str()))
      sandbox.environment_.push_back(name + "=" + value);
  return sandbox;
}

std::function<bool()> AgentSandbox::hook() const {
  return [plan = plan_] { return enter(*plan); };
}

std::string why_no_agent_sandbox() {
  if (strongest_sandbox_allowed() < SandboxLevel::namespaces)
    return std::string(kSandboxVariable) + " allows no namespaces";
  const auto folder = PrivateFolder::make("kbeam-room-");
  if (!folder.ok()) return folder.error().text();
  std::error_code ignored;
  const fs::path& path = folder->path();
  for (const char* name : {"root", "workspace"}) fs::create_directory(path / name, ignored);
  static_cast<void>(write_file(path / "socket", "").ok());
  const auto sandbox = AgentSandbox::prepare({.workspace = path / "workspace",
                                              .socket = path / "socket",
                                              .kbeam = "/bin/true",
                                              .root = path / "root",
                                              .access = {}});
  std::string why;
  if (!sandbox.ok()) {
    why = sandbox.error().text();
  } else {
    const auto ran = run_process({.command = {"/bin/true"},
                                  .folder = {},
                                  .environment = sandbox->environment(),
                                  .timeout_s = 20,
                                  .own_processes = true,
                                  .before_exec = sandbox->hook()});
    if (!ran.ok()) why = ran.error().text();
    if (ran.ok() && ran->exit_code != 0) why = "a program does not run there";
  }
  return why;
}

}  // namespace kbeam
