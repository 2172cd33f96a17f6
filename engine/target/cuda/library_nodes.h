// Nodes that a vendor's library executes: gemm by cuBLAS, baselines' routines by cuSOLVER, cuBLAS
// and cuDNN, loaded at run time and captured into graphs of their own. Only for plans of subjects
// that may use libraries.
//
// Vendor routines; matrices are column-major, offsets of a batch are counted in elements:
//   cusolver.sgeqrf        pointers: matrices (overwritten by H), tau
//                          numbers: m, n, lda, batch, matrix stride, tau stride
//                          one matrix after the other
//   cublas.sgeqrf_batched  the same pointers and numbers; pointer arrays are made here
//   cudnn.conv2d           pointers: X (NCHW), W, Y
//                          numbers: batch, channels, height, width, filters, kernel height, kernel
//                          width, stride, padding
//                          in FP32 arithmetic, by the fastest algorithm that sums products as they
//                          are
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "model/launch_plan.h"
#include "target/cuda/driver.h"

namespace kbeam {

class LibraryNodes {
 public:
  // Device memory that the libraries work in while the subject runs: workspaces, pointer arrays.
  using Allocate = std::function<CUdeviceptr(std::uint64_t bytes)>;

  static Result<std::unique_ptr<LibraryNodes>> load(const Driver& cuda, CUstream stream);
  virtual ~LibraryNodes() = default;

  // Before the first node of a case: where its memory comes from. Forgets the graphs of the case
  // before.
  virtual void begin_case(Allocate allocate) = 0;

  // The call as a graph, captured once a node and kept until the next case. Null when the routine
  // cannot be captured (vendor routines only). `addresses` are the plan's buffers. The first call
  // of a shape also runs once outside the capture: libraries load their kernels lazily.
  virtual CUgraph graph_of(const LaunchPlan& plan, int node,
                           const std::vector<CUdeviceptr>& addresses) = 0;
  // Runs it in the stream instead.
  virtual void run(const LaunchPlan& plan, int node, const std::vector<CUdeviceptr>& addresses) = 0;
};

// The routines that a plan may name.
const std::vector<std::string>& vendor_routines();

}  // namespace kbeam
