// Makes launch plans: runs the plan function of a built .cu in kbeam-planner, sandboxed, twice, and
// accepts only a plan that is the same both times and within limits. No GPU, no driver.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/candidate.h"
#include "model/launch_plan.h"
#include "model/problem.h"
#include "model/verdict.h"

namespace kbeam {

enum class PlanEntry { candidate, generate, check };

struct PlanRequest {
  std::filesystem::path module;  // the shared object that nvcc made
  PlanEntry entry = PlanEntry::candidate;
  std::vector<TensorShape> tensors;
  AxisValues axes;
  std::map<std::string, std::string> texts;        // "family", "grade", "depth"
  std::map<std::string, KernelResources> kernels;  // by mangled name; may be empty
  bool may_use_libraries = false;
};

struct PlannerOptions {
  std::filesystem::path planner;             // the kbeam-planner binary
  std::filesystem::path device_description;  // JSON
  double timeout_s = 10;
  std::int64_t memory_bytes = 2LL << 30;
  int most_nodes = 20000;
  std::int64_t most_scratch_bytes = 32LL << 30;
  std::int64_t most_table_bytes = 64LL << 20;
};

// A plan, or why there is none: bad_plan (the candidate's), not supported, crashed, timed_out.
struct Planned {
  Verdict verdict = Verdict::engine_failed;  // accepted: `plan` is there
  bool not_supported = false;
  std::string sentence;
  std::optional<LaunchPlan> plan;
  std::string image;  // the fat binary's bytes
};

// Plans every request of one module in one sandboxed process (twice): starting it costs more than
// planning.
Result<std::vector<Planned>> make_launch_plans(const PlannerOptions& options,
                                               const std::vector<PlanRequest>& requests);

// What the engine itself checks of a plan before anybody runs it; empty when it may run: buffers
// and offsets in range, nothing written to an input, shared memory and threads within the device's
// limits, every kernel in the image, nodes in order.
std::vector<std::string> find_plan_mistakes(const LaunchPlan& plan, const kbeam_device& device,
                                            const PlannerOptions& limits);

}  // namespace kbeam
