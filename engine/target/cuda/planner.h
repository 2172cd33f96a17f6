// Makes launch plans: runs the plan function of a built .cu in kbeam-planner, sandboxed, in two
// fresh processes, and accepts only a plan that is the same every time and within limits. No GPU,
// no driver, no CUDA toolkit.
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
#include "target/cuda/plan_mistakes.h"

namespace kbeam {

struct PlanRequest {
  std::filesystem::path module;  // the shared object that nvcc made
  PlanEntry entry = PlanEntry::candidate;
  std::vector<TensorShape> tensors;
  AxisValues axes;
  std::map<std::string, std::string> texts;  // "family", "grade", "depth": problem plans
  // By mangled name, as the compiler reported them; what is not here is read from the image.
  std::map<std::string, KernelResources> kernels;
  bool may_use_libraries = false;  // vendor calls: baselines
};

struct PlannerOptions {
  std::filesystem::path planner;             // the kbeam-planner binary
  std::filesystem::path device_description;  // JSON
  double timeout_s = 10;                     // of one process, all its plans together
  std::int64_t memory_bytes = 2LL << 30;
  PlanLimits limits;
};

// A plan, or why there is none. The verdict is the candidate's (bad_plan, crashed, timed_out,
// over_memory, broke_sandbox, refused_object), or not_supported: nobody's.
struct Planned {
  Verdict verdict = Verdict::engine_failed;  // accepted: `plan` is there
  std::string sentence;
  std::optional<LaunchPlan> plan;
  std::string image;  // the fat binary's bytes; empty: the plan launches no kernel of its own
  std::vector<std::string> writable_variables;  // of the image; only ever non-empty when refused
};

// One answer a request, in the same order. All requests of one module are planned in one process
// (and again, in another order, in a second one): starting it costs more than planning. The image
// is read from the module by the engine itself, never taken from the process.
Result<std::vector<Planned>> make_launch_plans(const PlannerOptions& options,
                                               const std::vector<PlanRequest>& requests);

// The description, and its hash as plans carry it.
struct DeviceDescription {
  std::string name;
  kbeam_device device{};
  std::string hash;
};
Result<DeviceDescription> read_device_description(const std::filesystem::path& path);

}  // namespace kbeam
