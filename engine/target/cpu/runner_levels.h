// Starting a runner at a chosen sandbox level, for tests and for comparing what the levels cost.
#pragma once

#include "target/cpu/runner.h"

namespace kbeam {

// `level` at most best_sandbox(); Runner::start always takes the best.
Result<Outcome<std::unique_ptr<Runner>>> start_runner_at(const RunnerOptions& options,
                                                         SandboxLevel level);

}  // namespace kbeam
