// What a plan function talks to: writes down what it asks for as a LaunchPlan and collects its
// mistakes. Checks only what it must know to go on; the engine checks the plan again, elsewhere.
#pragma once

#include <kbeam/launch_abi.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/candidate.h"
#include "model/launch_plan.h"

namespace kbeam::planner {

struct RecorderTensor {
  std::string name;
  kbeam_role role = KBEAM_INPUT;
  kbeam_element_type type = KBEAM_F32;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
};

struct RecorderRequest {
  std::string entry_name;
  std::vector<RecorderTensor> tensors;
  std::vector<PlanBuffer> buffers;  // those that the plan is given
  std::map<std::string, std::int64_t> axes;
  std::map<std::string, std::string> texts;
};

struct RecorderWorld {  // the same for every request of a process
  kbeam_device device{};
  std::map<std::string, KernelResources> kernels;
  std::int64_t most_nodes = 0;
  std::int64_t most_scratch_bytes = 0;
  std::int64_t most_table_bytes = 0;
};

struct Recording {
  LaunchPlan plan;
  std::vector<std::string> mistakes;
  std::optional<std::string> not_supported;
  bool out_of_memory = false;
};

// Runs the plan function once. Exceptions end it, as a mistake.
Recording record_plan(kbeam_cuda_plan_function* function, const RecorderWorld& world,
                      const RecorderRequest& request);

}  // namespace kbeam::planner
