// Plans of many nodes as graphs, for callers who come again with the same arrays: one launch of
// the host instead of one a node. Launching gives what enqueuing gives.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelbeam/status.h>

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "cuda/launch_recorder.h"
#include "cuda/plan_replay.h"

namespace kernelbeam::cuda {

class GraphCache {
 public:
  GraphCache() = default;
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;
  ~GraphCache();

  // Enqueues the plan on the stream: as a graph when it was enqueued with these addresses before
  // and no capture of the caller's is under way, node by node otherwise.
  Status run(const std::shared_ptr<const RecordedPlan>& plan, std::span<void* const> tensors,
             void* workspace, cudaStream_t stream, ReplayTools& tools);

 private:
  struct Entry {
    std::shared_ptr<const RecordedPlan> plan;  // kept, so that its address stays its name
    std::vector<void*> addresses;
    cudaGraphExec_t executable = nullptr;  // null: seen once
  };
  Entry& entry_for(const std::shared_ptr<const RecordedPlan>& plan, std::vector<void*> addresses,
                   bool& is_new);
  Status make_graph(Entry& entry, std::span<void* const> tensors, void* workspace,
                    ReplayTools& tools);

  std::list<Entry> entries_;  // most recently used first
  cudaStream_t capturing_ = nullptr;
};

}  // namespace kernelbeam::cuda
