// Probing and building the fence. Paths that a distribution lacks are skipped, everything else must
// succeed.
#include "target/cpu/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "model/sandbox_choice.h"
#include "target/cpu/runner.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

// Newer than the kernel headers of some distributions, so spelt out; the running kernel's version
// decides.
struct RulesetAttributes {
  std::uint64_t file_access;
  std::uint64_t network_access;
  std::uint64_t scoped;
};
constexpr std::uint64_t kFileAccessOfVersion[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};
constexpr std::uint64_t kAllNetworkAccess = 0x3;           // bind, connect: since version 4
constexpr std::uint64_t kSignalsAndAbstractSockets = 0x3;  // since version 6
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kFileRights = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_EXECUTE;

constexpr rlim_t kCpuSeconds = 3600;  // a backstop behind the watchdog
constexpr rlim_t kOpenFiles = 64;
constexpr int kNobody = 65534;

Error cannot_fence(const std::string& what) {
  return {ErrorCode::unavailable, "prepare the sandbox of a candidate",
          what + ": " + std::strerror(errno), "run kbeam doctor to see what this machine offers"};
}

Result<void> allow(int ruleset, const fs::path& path, std::uint64_t access) {
  const int descriptor = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (descriptor < 0) return {};  // a folder that this distribution lacks needs no permission
  struct stat about {};
  fstat(descriptor, &about);
  if (!S_ISDIR(about.st_mode)) access &= kFileRights;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = descriptor;
  const long outcome =
      syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  const int trouble = errno;
  close(descriptor);
  errno = trouble;
  if (outcome != 0) return cannot_fence("Landlock rule for " + path.string());
  return {};
}

Result<int> make_ruleset(const FenceRequest& request) {
  const int version = landlock_version();
  RulesetAttributes attributes{};
  attributes.file_access =
      kFileAccessOfVersion[std::min<std::size_t>(static_cast<std::size_t>(version), 5)];
  std::size_t size = sizeof attributes.file_access;
  if (version >= 4) {
    attributes.network_access = kAllNetworkAccess;
    size = offsetof(RulesetAttributes, scoped);
  }
  if (version >= 6) {
    attributes.scoped = kSignalsAndAbstractSockets;
    size = sizeof attributes;
  }
  const int ruleset = static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
  if (ruleset < 0) return cannot_fence("Landlock ruleset");
  for (const fs::path& path : request.executable)
    if (auto allowed = allow(ruleset, path, kRead | LANDLOCK_ACCESS_FS_EXECUTE); !allowed.ok()) {
      close(ruleset);
      return allowed.error();
    }
  for (const fs::path& path : request.readable)
    if (auto allowed = allow(ruleset, path, kRead); !allowed.ok()) {
      close(ruleset);
      return allowed.error();
    }
  return ruleset;
}

bool write_whole(const char* path, const char* text) {
  const int descriptor = open(path, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  const std::size_t length = std::strlen(text);
  const bool written = write(descriptor, text, length) == static_cast<ssize_t>(length);
  const int trouble = errno;
  close(descriptor);
  errno = trouble;
  return written;
}

bool limit(decltype(RLIMIT_AS) what, rlim_t most) {
  rlimit current{};
  if (getrlimit(what, &current) != 0) return false;
  const rlim_t bounded = std::min(most, current.rlim_max);
  const rlimit wanted{bounded, bounded};
  return setrlimit(what, &wanted) == 0;
}

bool namespaces_work() {
  auto fence = Fence::prepare({.level = SandboxLevel::namespaces});
  if (!fence.ok()) return false;
  const pid_t child = fork();
  if (child == 0) _exit(fence->enter() == nullptr ? 0 : 1);
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

bool has_seccomp() {
  std::uint32_t action = SECCOMP_RET_TRAP;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int landlock_version() {
  const long version =
      syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

SandboxLevel best_sandbox() {
  static const SandboxLevel offered = [] {
    if (!has_seccomp() || landlock_version() == 0) return SandboxLevel::rlimits;
    return namespaces_work() ? SandboxLevel::namespaces : SandboxLevel::landlock_seccomp;
  }();
  return std::min(offered, strongest_sandbox_allowed());
}

std::vector<std::string> weaknesses_of(SandboxLevel level) {
  std::vector<std::string> sentences;
  if (level < SandboxLevel::namespaces)
    sentences.emplace_back("no user, network, IPC and mount namespaces around the candidate");
  if (level < SandboxLevel::landlock_seccomp)
    sentences.emplace_back("no Landlock: the candidate can read this user's files while it loads");
  if (level == SandboxLevel::none || !has_seccomp())
    sentences.emplace_back(
        "no system call filter: the candidate can start threads, processes and timers");
  if (level < SandboxLevel::namespaces && level == strongest_sandbox_allowed())
    sentences.push_back(
        fmt::format("{} allows no more than {}", kSandboxVariable, to_string(level)));
  return sentences;
}

Result<Fence> Fence::prepare(const FenceRequest& request) {
  Fence fence;
  fence.level_ = request.level;
  fence.memory_bytes_ = request.memory_bytes;
  // One id is mapped, onto nobody: exec then drops every capability that the user namespace gave.
  fence.user_map_ = fmt::format("{} {} 1", kNobody, geteuid());
  fence.group_map_ = fmt::format("{} {} 1", kNobody, getegid());
  if (request.level >= SandboxLevel::landlock_seccomp) {
    ASSIGN_OR_RETURN(const int ruleset, make_ruleset(request));
    // Out of the way of the numbers that the launcher gives to the runner's descriptors.
    fence.ruleset_ = fcntl(ruleset, F_DUPFD_CLOEXEC, 16);
    close(ruleset);
    if (fence.ruleset_ < 0) return cannot_fence("Landlock descriptor");
  }
  return fence;
}

Fence::Fence(Fence&& other) noexcept
    : level_(other.level_),
      ruleset_(std::exchange(other.ruleset_, -1)),
      memory_bytes_(other.memory_bytes_),
      user_map_(std::move(other.user_map_)),
      group_map_(std::move(other.group_map_)) {}

Fence::~Fence() {
  if (ruleset_ >= 0) close(ruleset_);
}

const char* Fence::enter() const {
  // The kernel's memory killer takes the candidate before the judge; where this is refused nothing
  // is lost.
  write_whole("/proc/self/oom_score_adj", "1000");
  if (level_ >= SandboxLevel::namespaces)
    if (const char* step = enter_namespaces()) return step;
  if (const char* step = set_limits()) return step;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return "no new privileges";
  if (ruleset_ >= 0 && syscall(SYS_landlock_restrict_self, ruleset_, 0) != 0) return "Landlock";
  return nullptr;
}

const char* Fence::enter_namespaces() const {
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNS) != 0)
    return "new namespaces";
  if (!write_whole("/proc/self/setgroups", "deny")) return "setgroups of the user namespace";
  if (!write_whole("/proc/self/uid_map", user_map_.c_str()))
    return "user map of the user namespace";
  if (!write_whole("/proc/self/gid_map", group_map_.c_str()))
    return "group map of the user namespace";
  return nullptr;
}

const char* Fence::set_limits() const {
  if (!limit(RLIMIT_CORE, 0) || !limit(RLIMIT_FSIZE, 0) || !limit(RLIMIT_NOFILE, kOpenFiles) ||
      !limit(RLIMIT_CPU, kCpuSeconds))
    return "resource limits";
  if (memory_bytes_ > 0 && !limit(RLIMIT_AS, static_cast<rlim_t>(memory_bytes_)))
    return "memory limit";
  return nullptr;
}

}  // namespace kbeam
