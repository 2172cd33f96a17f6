// A LaunchPlan as an executable CUDA graph: nodes with their attributes, programmatic edges, tensor
// maps, conditional bodies and library calls on real addresses. Builds and launches; allocates no
// memory for the plan and judges nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/launch_plan.h"
#include "target/cuda/driver.h"
#include "target/cuda/library_nodes.h"
#include "target/cuda/loaded_image.h"
#include "target/cuda/seat_kernels.h"

namespace kbeam {

// What a plan's symbols stand for. The pieces outlive the replay.
struct ReplayContext {
  const Driver& cuda;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  const SeatKernels& kernels;
  LibraryNodes* library = nullptr;  // null: gemm and vendor nodes are refused
  // The plan works on memory that is unmapped between replays: copy nodes, which the driver may
  // resolve once, become kernels.
  bool remapped_memory = false;
};

class GraphReplay {
 public:
  // `addresses`: one for each of plan.buffers. `image` may be null when the plan launches no
  // kernel of its own.
  GraphReplay(const ReplayContext& context, const LaunchPlan& plan,
              std::vector<CUdeviceptr> addresses, LoadedImage* image);
  ~GraphReplay();
  GraphReplay(const GraphReplay&) = delete;
  GraphReplay& operator=(const GraphReplay&) = delete;

  // The graph itself records `event` behind the node recorded last, whatever else still runs.
  void mark_last_node(CUevent event) { last_node_event_ = event; }

  void build();  // graphs, executables, upload; destroys those before
  void drop();   // destroys them: needed before the image is reloaded
  // Replays once, in stream order. Returns at once.
  void launch() const;
  // Launches a vendor's routine outside the graph, because it cannot be captured.
  bool has_direct_calls() const { return !direct_calls_.empty(); }

  // Times of the plan's own nodes, replayed one after the other with an event between each two:
  // conditional nodes count with their bodies. One vector of nanoseconds per repeat; the last
  // value of each is an interval with nothing in it.
  std::vector<std::vector<double>> time_nodes(int repeats);
  // The nodes that time_nodes() times: those of no body.
  static std::vector<int> timed_nodes(const LaunchPlan& plan);

 private:
  struct Piece {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    int direct_call = -1;  // instead of a graph
  };
  class Builder;

  void add_piece(int begin, int end);
  std::vector<int> find_direct_calls();

  ReplayContext context_;
  const LaunchPlan& plan_;
  CUevent last_node_event_ = nullptr;
  std::vector<CUdeviceptr> addresses_;
  LoadedImage* image_;
  std::vector<Piece> pieces_;
  std::vector<int> direct_calls_;
  bool direct_calls_known_ = false;
};

}  // namespace kbeam
