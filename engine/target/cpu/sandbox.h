// The fence that the launcher puts around a child before exec: namespaces, Landlock, limits. The
// system call filter is installed later, by the runner itself, once its threads exist. Prepared
// before fork, entered after.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evaluation.h"

namespace kbeam {

struct FenceRequest {
  SandboxLevel level = SandboxLevel::namespaces;
  std::vector<std::filesystem::path> executable;  // may be read and executed
  std::vector<std::filesystem::path> readable;    // files, or folders with all that is in them
  std::int64_t memory_bytes = 0;
};

class Fence {
 public:
  static Result<Fence> prepare(const FenceRequest& request);
  Fence(Fence&& other) noexcept;
  Fence& operator=(Fence&&) = delete;
  ~Fence();

  // In the child, between fork and exec: async-signal-safe. Returns null, or the step that failed
  // (errno says why).
  const char* enter() const;

 private:
  Fence() = default;
  const char* enter_namespaces() const;
  const char* set_limits() const;

  SandboxLevel level_ = SandboxLevel::none;
  int ruleset_ = -1;
  std::int64_t memory_bytes_ = 0;
  std::string user_map_;
  std::string group_map_;
};

// System calls can be filtered here.
bool has_seccomp();
// 0 where Landlock is missing.
int landlock_version();

// What a weaker level leaves open, in sentences.
std::vector<std::string> weaknesses_of(SandboxLevel level);

}  // namespace kbeam
