// Enqueues a recorded plan on a stream: kernels, fills and copies with the addresses of this call.
// Branches of the plan go through streams of the device and end in the caller's.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelbeam/status.h>

#include <map>
#include <span>
#include <vector>

#include "cuda/launch_recorder.h"

namespace kernelbeam::cuda {

// What replays on one device share: streams of branches, events, and what kernels were allowed.
class ReplayTools {
 public:
  ReplayTools() = default;
  ReplayTools(const ReplayTools&) = delete;
  ReplayTools& operator=(const ReplayTools&) = delete;
  ~ReplayTools();

  // Kernels may use as much shared memory and clusters as large as the plan wants.
  Status allow(const RecordedPlan& plan);
  Status make_ready(const RecordedPlan& plan);  // streams and events
  cudaStream_t lane(int lane, cudaStream_t callers) const {
    return lane == 0 ? callers : lanes_[static_cast<std::size_t>(lane - 1)];
  }
  cudaEvent_t event(int index) const { return events_[static_cast<std::size_t>(index)]; }

 private:
  std::vector<cudaStream_t> lanes_;
  std::vector<cudaEvent_t> events_;
  std::map<const void*, std::uint32_t> shared_bytes_;
};

// `tensors` in the order of the plan's shape; `workspace` 256-byte aligned. The device is current.
Status replay(const RecordedPlan& plan, std::span<void* const> tensors, void* workspace,
              cudaStream_t stream, ReplayTools& tools);

}  // namespace kernelbeam::cuda
