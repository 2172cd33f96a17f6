// What the engine checks of a launch plan before anybody runs it. The plan comes from a process
// that ran foreign code, so nothing in it is taken for granted.
#pragma once

#include <kbeam/launch_abi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/launch_plan.h"
#include "model/problem.h"
#include "target/cuda/device_image.h"

namespace kbeam {

enum class PlanEntry { candidate, generate, check };

struct PlanLimits {
  int most_nodes = 20000;
  std::int64_t most_scratch_bytes = 32LL << 30;
  std::int64_t most_table_bytes = 64LL << 20;
};

struct PlanRules {
  PlanEntry entry = PlanEntry::candidate;
  const std::vector<TensorShape>& tensors;
  const kbeam_device& device;
  const DeviceImage& image;  // without kernels where the module holds no device code
  PlanLimits limits;
  bool may_use_libraries = false;  // vendor calls; a gemm is any candidate's rung
};

// How a plan's buffers begin, for every entry: the tensors that it may see, then the control of the
// call for the problem's own plans.
std::vector<PlanBuffer> given_buffers(PlanEntry entry, const std::vector<TensorShape>& tensors);

// Empty when the plan may run; else sentences, the first few of them. Checked are: the buffers
// given are those of the case, places are inside their buffers, nothing writes to an input or a
// table (as far as arguments tell: a kernel may still do it), shapes within the device's limits,
// kernels in the image with as many parameters of the same sizes, dependencies on earlier nodes of
// the same body, one node for each condition, tensor maps that the driver will accept.
std::vector<std::string> find_plan_mistakes(const LaunchPlan& plan, const PlanRules& rules);

// The rules of cuTensorMapEncodeTiled, and that the tensor lies inside its buffer.
std::vector<std::string> find_tensor_map_mistakes(const PlanTensorMap& map,
                                                  const std::vector<PlanBuffer>& buffers);

// "node 3 (axpy(float const*, float*))", for messages.
std::string name_of_node(const LaunchPlan& plan, std::size_t index);

}  // namespace kbeam
