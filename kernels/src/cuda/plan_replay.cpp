#include "cuda/plan_replay.h"

#include <cuda.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "cuda/check.h"

namespace kernelbeam::cuda {
namespace {

constexpr std::uint32_t kPortableCluster = 8;

std::uint32_t blocks_in(const std::uint32_t (&cluster)[3]) {
  return cluster[0] * cluster[1] * cluster[2];
}

// cuTensorMapEncodeTiled is the driver's; asking the runtime for it saves a link to libcuda.
Status encode(const kbeam_tensor_map& request, void* base, CUtensorMap& map) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode_tiled = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const cudaError_t asked = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found,
                                                               12000, cudaEnableDefault, &result);
    return asked == cudaSuccess ? reinterpret_cast<Encode>(found) : nullptr;
  }();
  if (encode_tiled == nullptr) return Status::device_error;
  const CUresult result = encode_tiled(
      &map, static_cast<CUtensorMapDataType>(request.data_type),
      static_cast<cuuint32_t>(request.rank), base, request.dim, request.stride_bytes + 1,
      request.box, request.element_stride, static_cast<CUtensorMapInterleave>(request.interleave),
      static_cast<CUtensorMapSwizzle>(request.swizzle),
      static_cast<CUtensorMapL2promotion>(request.l2_promotion),
      static_cast<CUtensorMapFloatOOBfill>(request.fill));
  return result == CUDA_SUCCESS ? Status::ok : Status::device_error;
}

class Enqueuing {
 public:
  Enqueuing(const RecordedPlan& plan, std::span<void* const> tensors, void* workspace,
            cudaStream_t stream, ReplayTools& tools)
      : plan_(plan), tensors_(tensors), workspace_(workspace), stream_(stream), tools_(tools) {}

  Status run() {
    KERNELBEAM_RETURN_IF_BAD(tools_.make_ready(plan_));
    if (plan_.zeroed_bytes > 0)
      KERNELBEAM_CUDA(
          cudaMemsetAsync(workspace_, 0, static_cast<std::size_t>(plan_.zeroed_bytes), stream_));
    has_begun_.assign(static_cast<std::size_t>(plan_.lanes), false);
    has_begun_[0] = true;
    if (plan_.lanes > 1) KERNELBEAM_CUDA(cudaEventRecord(start(), stream_));
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i)
      KERNELBEAM_RETURN_IF_BAD(add(static_cast<int>(i)));
    for (const int end : plan_.ends)
      KERNELBEAM_CUDA(cudaStreamWaitEvent(stream_, tools_.event(end), 0));
    return Status::ok;
  }

 private:
  cudaEvent_t start() const { return tools_.event(static_cast<int>(plan_.nodes.size())); }

  Status add(int index) {
    const PlanNode& node = plan_.nodes[static_cast<std::size_t>(index)];
    cudaStream_t lane = tools_.lane(node.lane, stream_);
    if (!has_begun_[static_cast<std::size_t>(node.lane)]) {
      KERNELBEAM_CUDA(cudaStreamWaitEvent(lane, start(), 0));
      has_begun_[static_cast<std::size_t>(node.lane)] = true;
    }
    for (const int earlier : node.waits)
      KERNELBEAM_CUDA(cudaStreamWaitEvent(lane, tools_.event(earlier), 0));
    switch (node.kind) {
      case PlanNode::Kind::kernel:
        KERNELBEAM_RETURN_IF_BAD(launch(node, lane));
        break;
      case PlanNode::Kind::fill:
        KERNELBEAM_CUDA(cudaMemsetAsync(address(node.to), node.byte_value,
                                        static_cast<std::size_t>(node.count), lane));
        break;
      case PlanNode::Kind::copy:
        KERNELBEAM_CUDA(cudaMemcpyAsync(address(node.to), address(node.from),
                                        static_cast<std::size_t>(node.count),
                                        cudaMemcpyDeviceToDevice, lane));
        break;
    }
    if (node.is_waited_for) KERNELBEAM_CUDA(cudaEventRecord(tools_.event(index), lane));
    return Status::ok;
  }

  // The runtime copies the arguments before it returns.
  Status launch(const PlanNode& node, cudaStream_t lane) {
    bytes_.assign(node.bytes.size() + kSlack, std::byte{});
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes_.data());
    std::byte* const first = bytes_.data() + (kSlack - begin % kSlack) % kSlack;
    std::copy(node.bytes.begin(), node.bytes.end(), first);
    std::vector<void*> parameters;
    for (const PlanNode::Argument& argument : node.arguments) {
      std::byte* const at = first + argument.at;
      if (argument.kind == KBEAM_ADDRESS) {
        void* const pointer = address(argument.place);
        std::memcpy(at, &pointer, sizeof pointer);
      } else if (argument.kind == KBEAM_TENSOR_MAP) {
        const kbeam_tensor_map& request = plan_.tensor_maps[static_cast<std::size_t>(argument.map)];
        KERNELBEAM_RETURN_IF_BAD(
            encode(request, address(request.base), *reinterpret_cast<CUtensorMap*>(at)));
      }
      parameters.push_back(at);
    }
    std::array<cudaLaunchAttribute, 3> attributes{};
    cudaLaunchConfig_t config{};
    config.gridDim = {node.grid[0], node.grid[1], node.grid[2]};
    config.blockDim = {node.block[0], node.block[1], node.block[2]};
    config.dynamicSmemBytes = node.shared_bytes;
    config.stream = lane;
    config.attrs = attributes.data();
    const auto next = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue& {
      cudaLaunchAttribute& attribute = attributes.at(config.numAttrs++);
      attribute.id = id;
      return attribute.val;
    };
    if (node.cluster[0] > 0)
      next(cudaLaunchAttributeClusterDimension).clusterDim = {node.cluster[0], node.cluster[1],
                                                              node.cluster[2]};
    if (node.cooperative) next(cudaLaunchAttributeCooperative).cooperative = 1;
    // Across streams there is no overlap; the kernel's own wait then returns at once.
    if (node.overlap_previous && node.waits.empty())
      next(cudaLaunchAttributeProgrammaticStreamSerialization)
          .programmaticStreamSerializationAllowed = 1;
    KERNELBEAM_CUDA(cudaLaunchKernelExC(&config, node.kernel, parameters.data()));
    return Status::ok;
  }

  void* address(const kbeam_pointer& place) const {
    const auto buffer = static_cast<std::size_t>(place.buffer);
    const std::int64_t offset = plan_.buffers[buffer].offset;
    std::byte* const base = offset < 0 ? static_cast<std::byte*>(tensors_[buffer])
                                       : static_cast<std::byte*>(workspace_) + offset;
    return base + place.offset_bytes;
  }

  static constexpr std::size_t kSlack = alignof(CUtensorMap);
  const RecordedPlan& plan_;
  std::span<void* const> tensors_;
  void* workspace_;
  cudaStream_t stream_;
  ReplayTools& tools_;
  std::vector<bool> has_begun_;
  std::vector<std::byte> bytes_;
};

}  // namespace

ReplayTools::~ReplayTools() {
  for (cudaStream_t stream : lanes_) cudaStreamDestroy(stream);
  for (cudaEvent_t event : events_) cudaEventDestroy(event);
}

Status ReplayTools::allow(const RecordedPlan& plan) {
  for (const PlanNode& node : plan.nodes) {
    if (node.kind != PlanNode::Kind::kernel) continue;
    // An attribute sticks to the kernel: another plan may need more of it.
    std::uint32_t& allowed = shared_bytes_[node.kernel];
    if (node.shared_bytes > allowed) {
      allowed = node.shared_bytes;
      KERNELBEAM_CUDA(cudaFuncSetAttribute(node.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(allowed)));
    }
    if (blocks_in(node.cluster) > kPortableCluster)
      KERNELBEAM_CUDA(
          cudaFuncSetAttribute(node.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    if (node.shared_carveout_percent >= 0)
      KERNELBEAM_CUDA(cudaFuncSetAttribute(node.kernel,
                                           cudaFuncAttributePreferredSharedMemoryCarveout,
                                           node.shared_carveout_percent));
  }
  return Status::ok;
}

Status ReplayTools::make_ready(const RecordedPlan& plan) {
  if (plan.lanes <= 1) return Status::ok;
  while (static_cast<int>(lanes_.size()) + 1 < plan.lanes) {
    cudaStream_t stream = nullptr;
    KERNELBEAM_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    lanes_.push_back(stream);
  }
  while (events_.size() <= plan.nodes.size()) {
    cudaEvent_t event = nullptr;
    KERNELBEAM_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    events_.push_back(event);
  }
  return Status::ok;
}

Status replay(const RecordedPlan& plan, std::span<void* const> tensors, void* workspace,
              cudaStream_t stream, ReplayTools& tools) {
  return Enqueuing(plan, tensors, workspace, stream, tools).run();
}

}  // namespace kernelbeam::cuda
