// One run of a candidate that was built with a sanitizer, in a process of its own behind the fence.
// Reads what the sanitizer says; what its outputs are worth is the caller's to judge.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/problem.h"
#include "model/watch.h"
#include "target/cpu/runner.h"

namespace kbeam {

struct WatchedCase {
  std::vector<TensorShape> tensors;
  AxisValues axes;
  std::vector<std::vector<std::byte>> inputs;  // in the order of the shapes
};

struct WatchedRequest {
  const WatchedBuild& build;
  std::span<const WatchedCase> cases;
  int workers = 1;
  double timeout_s = 120;
  std::function<bool()> give_up;
};

struct WatchedOutcome {
  std::optional<RunnerFailure> failure;
  std::size_t failed_case = 0;  // where `failure` happened
  bool uses_parallel_for = false;
  std::vector<std::vector<std::vector<std::byte>>> outputs;  // by case, in the order of the shapes
};

Result<WatchedOutcome> run_watched(const WatchedRequest& request);

// What a sanitizer printed, as a verdict and one sentence; nothing when it printed no finding.
std::optional<RunnerFailure> explain_finding(std::string_view printed);

}  // namespace kbeam
