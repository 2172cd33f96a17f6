// One run of the compiler: confined, limited, with its log; and what a failed run means.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process.h"
#include "base/result.h"
#include "build/compiler.h"
#include "build/compiler_sandbox.h"
#include "build/toolchain.h"
#include "model/candidate.h"
#include "model/verdict.h"

namespace kbeam {

struct CompilerRun {
  std::vector<std::string> arguments;
  std::filesystem::path folder;             // where it runs and writes
  std::vector<std::filesystem::path> read;  // beside the toolchain's own files
  std::filesystem::path start_in;           // empty: `folder`
  BuildLimits limits;
  bool idle_priority = false;
  std::function<bool()> cancelled;
  std::size_t log_bytes = 64 * 1024;  // more is cut
};

Result<ProcessOutcome> run_compiler(const Toolchain& toolchain, const CompilerSandbox& sandbox,
                                    const CompilerRun& run);

struct BuildFailure {
  Verdict verdict = Verdict::build_failed;
  std::string reason;
  bool repeatable = true;  // false: the same source could build under other limits or less load
};
// For an outcome that is no success.
BuildFailure explain_failure(const ProcessOutcome& outcome, const BuildLimits& limits);

// What a build ended with. `repeatable`: the same inputs give this artifact again, so that it may
// be cached.
struct Built {
  Artifact artifact;
  bool repeatable = true;
};
Built not_built(ProcessOutcome outcome, const BuildLimits& limits);
Built refused(const std::string& reason, std::string log);

// Text that a candidate had a hand in, made safe for terminals and JSON: bytes that are no UTF-8
// and control characters other than line ends and tabs become '?'.
std::string printable(std::string_view text);

}  // namespace kbeam
