// Landlock through raw system calls: its constants beyond version 2 are newer than this system's
// headers.
#include "build/compiler_sandbox.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "base/process.h"
#include "model/sandbox_choice.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kAccessOfVersion1 = (std::uint64_t{1} << 13) - 1;
constexpr std::uint64_t kRefer = std::uint64_t{1} << 13;          // version 2
constexpr std::uint64_t kTruncate = std::uint64_t{1} << 14;       // version 3
constexpr std::uint64_t kDeviceControl = std::uint64_t{1} << 15;  // version 5
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

// The kernel's struct landlock_ruleset_attr as of version 6; older kernels take its first fields.
struct RulesetAttributes {
  std::uint64_t file_access;
  std::uint64_t network_access;  // version 4
  std::uint64_t scopes;          // version 6
};

std::uint64_t file_access(int version) {
  std::uint64_t access = kAccessOfVersion1;
  if (version >= 2) access |= kRefer;
  if (version >= 3) access |= kTruncate;
  if (version >= 5) access |= kDeviceControl;
  return access;
}

int landlock_version() {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

class Ruleset {
 public:
  explicit Ruleset(int version) : access_(file_access(version)) {
    const RulesetAttributes attributes{access_, version >= 4 ? 3ULL : 0, version >= 6 ? 3ULL : 0};
    const std::size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
    descriptor_ = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, size, 0));
  }
  ~Ruleset() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Ruleset(const Ruleset&) = delete;
  Ruleset& operator=(const Ruleset&) = delete;

  int descriptor() const { return descriptor_; }

  // A path that does not exist needs no rule: nothing can be opened there.
  bool allow(const fs::path& path, std::uint64_t access) const {
    const int target = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (target < 0) return errno == ENOENT;
    std::uint64_t usable = access & access_;
    if (!fs::is_directory(path))
      usable &= LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |
                LANDLOCK_ACCESS_FS_EXECUTE | kTruncate;
    const landlock_path_beneath_attr rule{.allowed_access = usable, .parent_fd = target};
    const long failed =
        ::syscall(SYS_landlock_add_rule, descriptor_, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    ::close(target);
    return failed == 0;
  }

  // In the child, between fork and exec.
  bool enforce() const {
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           ::syscall(SYS_landlock_restrict_self, descriptor_, 0) == 0;
  }

 private:
  std::uint64_t access_;
  int descriptor_ = -1;
};

// An unprivileged user needs a user namespace to have a network namespace; root may be denied the
// former.
bool leave_network() {
  return ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 || ::unshare(CLONE_NEWNET) == 0;
}

bool works(const std::function<bool()>& hook) {
  const auto outcome = run_process(
      {.command = {"/bin/true"}, .environment = {}, .timeout_s = 10, .before_exec = hook});
  return outcome.ok() && outcome->exit_code == 0;
}

}  // namespace

CompilerSandbox CompilerSandbox::detect(std::vector<fs::path> toolchains) {
  CompilerSandbox sandbox;
  sandbox.toolchains_ = std::move(toolchains);
  const SandboxLevel allowed = strongest_sandbox_allowed();
  sandbox.private_network_ = allowed >= SandboxLevel::namespaces && works(leave_network);
  if (!sandbox.private_network_)
    sandbox.weaknesses_.emplace_back(
        "the compiler can reach the network: this kernel gives no network namespace");
  sandbox.landlock_version_ = allowed >= SandboxLevel::landlock_seccomp ? landlock_version() : 0;
  if (sandbox.landlock_version_ > 0) {
    std::error_code trouble;
    fs::path scratch = fs::temp_directory_path(trouble);
    if (trouble) scratch = "/tmp";
    const auto hook = sandbox.confine({.read = {}, .write = scratch});
    if (!hook.ok() || !works(*hook)) sandbox.landlock_version_ = 0;
  }
  if (sandbox.landlock_version_ == 0)
    sandbox.weaknesses_.emplace_back(
        "the compiler can read every file of this user: this kernel has no Landlock");
  if (allowed < SandboxLevel::namespaces)
    sandbox.weaknesses_.push_back(std::string(kSandboxVariable) +
                                  " allows the compiler no more than " +
                                  std::string(to_string(allowed)));
  return sandbox;
}

Result<std::function<bool()>> CompilerSandbox::confine(const Access& access) const {
  std::shared_ptr<Ruleset> ruleset;
  if (landlock_version_ > 0) {
    ruleset = std::make_shared<Ruleset>(landlock_version_);
    bool sound = ruleset->descriptor() >= 0;
    for (const char* system : {"/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache"})
      sound = sound && ruleset->allow(system, kRead | LANDLOCK_ACCESS_FS_EXECUTE);
    for (const fs::path& toolchain : toolchains_)
      sound = sound && ruleset->allow(toolchain, kRead | LANDLOCK_ACCESS_FS_EXECUTE);
    sound = sound && ruleset->allow("/dev/null", kRead | LANDLOCK_ACCESS_FS_WRITE_FILE);
    for (const fs::path& path : access.read) sound = sound && ruleset->allow(path, kRead);
    sound = sound && ruleset->allow(access.write,
                                    ~std::uint64_t{0} & ~std::uint64_t{LANDLOCK_ACCESS_FS_EXECUTE});
    if (!sound)
      return Error{ErrorCode::unavailable, "confine the compiler to " + access.write.string(),
                   std::strerror(errno), "run `kbeam doctor`"};
  }
  const bool private_network = private_network_;
  const auto cpu_s = static_cast<rlim_t>(access.cpu_s) + 2;
  return std::function<bool()>([ruleset, private_network, cpu_s] {
    const rlimit cpu{cpu_s, cpu_s};
    if (::setrlimit(RLIMIT_CPU, &cpu) != 0) return false;
    if (private_network && !leave_network()) return false;
    return ruleset == nullptr || ruleset->enforce();
  });
}

}  // namespace kbeam
