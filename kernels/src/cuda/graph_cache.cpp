#include "cuda/graph_cache.h"

#include <algorithm>
#include <utility>

#include "cuda/check.h"

namespace kernelbeam::cuda {
namespace {

// Below this a graph's own launch costs as much as the kernels'.
constexpr std::size_t kLeastNodes = 4;
constexpr std::size_t kMostGraphs = 32;

}  // namespace

GraphCache::~GraphCache() {
  for (const Entry& entry : entries_)
    if (entry.executable != nullptr) cudaGraphExecDestroy(entry.executable);
  if (capturing_ != nullptr) cudaStreamDestroy(capturing_);
}

Status GraphCache::run(const std::shared_ptr<const RecordedPlan>& plan,
                       std::span<void* const> tensors, void* workspace, cudaStream_t stream,
                       ReplayTools& tools) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  KERNELBEAM_CUDA(cudaStreamIsCapturing(stream, &capture));
  if (plan->nodes.size() < kLeastNodes || capture != cudaStreamCaptureStatusNone)
    return replay(*plan, tensors, workspace, stream, tools);
  std::vector<void*> addresses(tensors.begin(), tensors.end());
  addresses.push_back(workspace);
  bool is_new = false;
  Entry& entry = entry_for(plan, std::move(addresses), is_new);
  // A graph costs as much to make as several calls: not for arrays that may never come again.
  if (is_new) return replay(*plan, tensors, workspace, stream, tools);
  if (entry.executable == nullptr)
    KERNELBEAM_RETURN_IF_BAD(make_graph(entry, tensors, workspace, tools));
  KERNELBEAM_CUDA(cudaGraphLaunch(entry.executable, stream));
  return Status::ok;
}

GraphCache::Entry& GraphCache::entry_for(const std::shared_ptr<const RecordedPlan>& plan,
                                         std::vector<void*> addresses, bool& is_new) {
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.plan == plan && entry.addresses == addresses;
  });
  is_new = known == entries_.end();
  if (!is_new) {
    entries_.splice(entries_.begin(), entries_, known);
    return entries_.front();
  }
  entries_.push_front({plan, std::move(addresses)});
  if (entries_.size() > kMostGraphs) {
    // One that still runs is freed by the driver when it is through.
    if (entries_.back().executable != nullptr) cudaGraphExecDestroy(entries_.back().executable);
    entries_.pop_back();
  }
  return entries_.front();
}

Status GraphCache::make_graph(Entry& entry, std::span<void* const> tensors, void* workspace,
                              ReplayTools& tools) {
  if (capturing_ == nullptr)
    KERNELBEAM_CUDA(cudaStreamCreateWithFlags(&capturing_, cudaStreamNonBlocking));
  KERNELBEAM_CUDA(cudaStreamBeginCapture(capturing_, cudaStreamCaptureModeThreadLocal));
  const Status enqueued = replay(*entry.plan, tensors, workspace, capturing_, tools);
  cudaGraph_t graph = nullptr;
  const Status ended = status_of(cudaStreamEndCapture(capturing_, &graph));
  Status made = enqueued != Status::ok ? enqueued : ended;
  if (made == Status::ok) made = status_of(cudaGraphInstantiate(&entry.executable, graph, 0));
  if (graph != nullptr) cudaGraphDestroy(graph);
  return made;
}

}  // namespace kernelbeam::cuda
