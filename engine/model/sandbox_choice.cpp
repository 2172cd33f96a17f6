#include "model/sandbox_choice.h"

#include <cstdlib>

namespace kbeam {

std::optional<SandboxLevel> parse_sandbox_level(std::string_view word) {
  for (const SandboxLevel level : {SandboxLevel::none, SandboxLevel::rlimits,
                                   SandboxLevel::landlock_seccomp, SandboxLevel::namespaces})
    if (word == to_string(level)) return level;
  return std::nullopt;
}

SandboxLevel strongest_sandbox_allowed() {
  const char* const word = std::getenv(kSandboxVariable);
  if (word == nullptr || *word == '\0') return SandboxLevel::namespaces;
  return parse_sandbox_level(word).value_or(SandboxLevel::none);
}

}  // namespace kbeam
