// The strongest sandbox that may be used, where somebody wants less than the machine offers: the
// environment variable KBEAM_SANDBOX holds one of the words none, rlimits, landlock_seccomp,
// namespaces. Only ever lowers a level; what the machine offers is probed elsewhere.
#pragma once

#include <optional>
#include <string_view>

#include "model/evaluation.h"

namespace kbeam {

inline constexpr char kSandboxVariable[] = "KBEAM_SANDBOX";

std::optional<SandboxLevel> parse_sandbox_level(std::string_view word);

// `namespaces` when the variable is not set. A word that is no level counts as `none`: a typing
// error must not promote anything.
SandboxLevel strongest_sandbox_allowed();

}  // namespace kbeam
