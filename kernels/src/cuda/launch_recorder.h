// A plan function and a shape -> what a call enqueues. Runs no GPU code.
#pragma once

#include <kbeam/launch_abi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kernelbeam::cuda {

struct PlanTensor {
  const char* name = "";
  std::int32_t role = KBEAM_INPUT;
  kbeam_buffer shape{};
};

struct PlanShape {
  std::vector<PlanTensor> tensors;
  std::vector<std::pair<const char*, std::int64_t>> axes;
};

// What plans ask of a device.
struct PlanDevice {
  kbeam_device description{};
  // Blocks of a kernel that are resident on one multiprocessor.
  std::function<int(const void* kernel, int threads, std::int64_t shared_bytes)> resident_blocks;
};

struct PlanNode {
  enum class Kind { kernel, fill, copy };
  Kind kind = Kind::kernel;
  const void* kernel = nullptr;
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {0, 0, 0};
  std::uint32_t shared_bytes = 0;
  bool cooperative = false;
  bool overlap_previous = false;
  int shared_carveout_percent = -1;
  struct Argument {
    std::int32_t kind = KBEAM_VALUE;
    std::size_t at = 0;     // of its bytes in `bytes`
    kbeam_pointer place{};  // KBEAM_ADDRESS
    std::int32_t map = -1;  // KBEAM_TENSOR_MAP
  };
  std::vector<Argument> arguments;
  std::vector<std::byte> bytes;  // of all arguments, each aligned for a CUtensorMap
  kbeam_pointer to{}, from{};    // fill and copy
  std::int64_t count = 0;        // bytes that they write
  std::uint8_t byte_value = 0;
  std::vector<int> after;  // nodes that it waits for; none: the start

  // Where it is enqueued: lane 0 is the caller's stream. It waits for the events of `waits`, which
  // are in other lanes.
  int lane = 0;
  std::vector<int> waits;
  bool is_waited_for = false;  // by another lane
};

struct RecordedPlan {
  // Of the tensors first, in the order of the shape, then scratch.
  struct Buffer {
    std::int64_t bytes = 0;
    std::int64_t offset = -1;  // in the workspace; -1: a tensor
  };
  std::vector<Buffer> buffers;
  std::vector<PlanNode> nodes;
  std::vector<kbeam_tensor_map> tensor_maps;
  std::int64_t workspace_bytes = 0;
  std::int64_t zeroed_bytes = 0;  // at the start of the workspace
  int lanes = 1;
  std::vector<int> ends;  // nodes in other lanes that nothing later waits for
  bool not_supported = false;
  std::string error;  // empty: it may be enqueued
};

RecordedPlan record_plan(kbeam_cuda_plan_function* function, const PlanShape& shape,
                         const PlanDevice& device);

}  // namespace kernelbeam::cuda
