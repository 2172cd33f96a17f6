#include "target/cuda/library_nodes.h"

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <set>

#include "target/cuda/cudnn_convolution.h"
#include "target/cuda/device_memory.h"

namespace kbeam {
namespace {

constexpr std::uint64_t kWorkspaceBytes = 32 << 20;  // what cuBLAS recommends on Hopper
constexpr const char* kToolkitFolder = "/usr/local/cuda/lib64/";

// From the loader's path, else from the toolkit's usual folder. Null when it is in neither.
void* open_library(const std::string& name) {
  if (void* found = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) return found;
  return ::dlopen((kToolkitFolder + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

[[noreturn]] void library_failed(const char* call, int status) {
  throw DriverFailure(CUDA_ERROR_UNKNOWN, call, fmt::format("{} returned status {}", call, status));
}
// The machine's lack, not the plan's mistake.
[[noreturn]] void not_here(const std::string& sentence) {
  throw DriverFailure(CUDA_ERROR_UNKNOWN, "library node", sentence);
}
[[noreturn]] void bad_call(const std::string& sentence) {
  throw DriverFailure(CUDA_ERROR_INVALID_VALUE, "library node", sentence);
}

int as_int(std::int64_t value, const char* what) {
  if (value < 0 || value > INT_MAX)
    bad_call(fmt::format("{} is {}, which the library cannot take", what, value));
  return static_cast<int>(value);
}

#define KBEAM_CUBLAS_CALLS(X) \
  X(cublasCreate_v2)          \
  X(cublasSetStream_v2)       \
  X(cublasSetWorkspace_v2)    \
  X(cublasSgeqrfBatched)
#define KBEAM_CUSOLVER_CALLS(X)  \
  X(cusolverDnCreate)            \
  X(cusolverDnSetStream)         \
  X(cusolverDnSgeqrf_bufferSize) \
  X(cusolverDnSgeqrf)

struct Cublas {
#define KBEAM_DECLARE(name) decltype(&::name) name = nullptr;
  KBEAM_CUBLAS_CALLS(KBEAM_DECLARE)
  // Overloaded in C++, so its type cannot be taken from the header.
  // NOLINTNEXTLINE(readability-identifier-naming): the library's own name
  cublasStatus_t (*cublasGemmStridedBatchedEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t,
                                               int, int, int, const void* alpha, const void* a,
                                               cudaDataType, int lda, long long stride_a,
                                               const void* b, cudaDataType, int ldb,
                                               long long stride_b, const void* beta, void* c,
                                               cudaDataType, int ldc, long long stride_c, int batch,
                                               cublasComputeType_t, cublasGemmAlgo_t) = nullptr;
};
struct Cusolver {
  KBEAM_CUSOLVER_CALLS(KBEAM_DECLARE)
#undef KBEAM_DECLARE
};

template <typename Function>
bool resolve(void* library, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

cudaDataType_t data_type(int type) {
  switch (type) {
    case KBEAM_GEMM_F16:
      return CUDA_R_16F;
    case KBEAM_GEMM_BF16:
      return CUDA_R_16BF;
    case KBEAM_GEMM_F32:
      return CUDA_R_32F;
    case KBEAM_GEMM_F64:
      return CUDA_R_64F;
    default:
      bad_call("an unknown type of matrix elements");
  }
}

cublasComputeType_t compute_type(int compute) {
  switch (compute) {
    case KBEAM_COMPUTE_F32:
      return CUBLAS_COMPUTE_32F;
    case KBEAM_COMPUTE_TF32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case KBEAM_COMPUTE_F64:
      return CUBLAS_COMPUTE_64F;
    default:
      bad_call("an unknown type of arithmetic");
  }
}

// The pointers and numbers that both geqrf routines take.
struct GeqrfCall {
  CUdeviceptr matrices = 0, tau = 0;
  int m = 0, n = 0, lda = 0, batch = 0;
  std::int64_t matrix_stride = 0, tau_stride = 0;
};

class LoadedLibraries final : public LibraryNodes {
 public:
  LoadedLibraries(const Driver& cuda, CUstream stream, const Cublas& cublas)
      : cuda_(cuda), stream_(stream), cublas_(cublas) {}
  ~LoadedLibraries() override { destroy_graphs(); }

  bool open() {
    return cublas_.cublasCreate_v2(&blas_) == CUBLAS_STATUS_SUCCESS &&
           cublas_.cublasSetStream_v2(blas_, to_runtime(stream_)) == CUBLAS_STATUS_SUCCESS;
  }

  void begin_case(Allocate allocate) override {
    destroy_graphs();
    prepared_.clear();
    if (cudnn_) cudnn_->begin_case();
    allocate_ = std::move(allocate);
    workspace_ = allocate_(kWorkspaceBytes);
    const auto status = cublas_.cublasSetWorkspace_v2(blas_, to_host<void>(workspace_),
                                                      static_cast<std::size_t>(kWorkspaceBytes));
    if (status != CUBLAS_STATUS_SUCCESS) library_failed("cublasSetWorkspace", status);
  }

  CUgraph graph_of(const LaunchPlan& plan, int node,
                   const std::vector<CUdeviceptr>& addresses) override {
    const auto known = graphs_.find({&plan, node});
    if (known != graphs_.end()) return known->second;
    const std::string& routine = plan.nodes[static_cast<std::size_t>(node)].routine;
    if (uncapturable_.contains(routine)) return graphs_[{&plan, node}] = nullptr;
    run(plan, node, addresses);
    DRIVER(cuda_, cuStreamSynchronize, stream_);
    CUgraph graph = capture(plan, node, addresses);
    if (graph == nullptr) uncapturable_.insert(routine);
    return graphs_[{&plan, node}] = graph;
  }

  void run(const LaunchPlan& plan, int node, const std::vector<CUdeviceptr>& addresses) override {
    const PlanNode& call = plan.nodes[static_cast<std::size_t>(node)];
    if (call.kind == NodeKind::gemm)
      run_gemm(call.gemm, addresses);
    else
      run_vendor(call, addresses);
  }

 private:
  static cudaStream_t to_runtime(CUstream stream) { return stream; }
  template <typename T>
  static T* to_host(CUdeviceptr address) {
    return reinterpret_cast<T*>(address);
  }
  static CUdeviceptr at(const BufferPlace& place, const std::vector<CUdeviceptr>& addresses) {
    return addresses[static_cast<std::size_t>(place.buffer)] +
           static_cast<CUdeviceptr>(place.offset_bytes);
  }

  void destroy_graphs() {
    for (const auto& [key, graph] : graphs_)
      if (graph != nullptr) cuda_.cuGraphDestroy(graph);
    graphs_.clear();
  }

  // Null when the routine did what a capture forbids (a vendor's routine may synchronise).
  CUgraph capture(const LaunchPlan& plan, int node, const std::vector<CUdeviceptr>& addresses) {
    CUgraph graph = nullptr;
    DRIVER(cuda_, cuStreamBeginCapture, stream_, CU_STREAM_CAPTURE_MODE_RELAXED);
    std::string trouble;
    try {
      run(plan, node, addresses);
    } catch (const DriverFailure& failure) {
      trouble = failure.what();
    }
    const CUresult ended = cuda_.cuStreamEndCapture(stream_, &graph);
    if (ended == CUDA_SUCCESS && trouble.empty()) return graph;
    if (graph != nullptr) cuda_.cuGraphDestroy(graph);
    if (plan.nodes[static_cast<std::size_t>(node)].kind == NodeKind::vendor_call) return nullptr;
    throw DriverFailure(ended, "cuStreamEndCapture",
                        "a library product cannot be captured: " + trouble);
  }

  void run_gemm(const PlanNode::GemmCall& gemm, const std::vector<CUdeviceptr>& addresses) {
    const bool in_double = gemm.compute == KBEAM_COMPUTE_F64;
    const float alpha32 = static_cast<float>(gemm.alpha);
    const float beta32 = static_cast<float>(gemm.beta);
    const void* alpha = in_double ? static_cast<const void*>(&gemm.alpha) : &alpha32;
    const void* beta = in_double ? static_cast<const void*>(&gemm.beta) : &beta32;
    const cudaDataType_t in = data_type(gemm.type_a_b);
    const auto status = cublas_.cublasGemmStridedBatchedEx(
        blas_, gemm.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
        gemm.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, as_int(gemm.m, "m"), as_int(gemm.n, "n"),
        as_int(gemm.k, "k"), alpha, to_host<void>(at(gemm.a, addresses)), in,
        as_int(gemm.lda, "lda"), gemm.stride_a, to_host<void>(at(gemm.b, addresses)), in,
        as_int(gemm.ldb, "ldb"), gemm.stride_b, beta, to_host<void>(at(gemm.c, addresses)),
        data_type(gemm.type_c), as_int(gemm.ldc, "ldc"), gemm.stride_c, as_int(gemm.batch, "batch"),
        compute_type(gemm.compute), CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS) library_failed("cublasGemmStridedBatchedEx", status);
  }

  static void expect_counts(const PlanNode& node, std::size_t pointers, std::size_t numbers) {
    if (node.pointers.size() != pointers || node.numbers.size() != numbers)
      bad_call(fmt::format("{} takes {} pointers and {} numbers, the plan passes {} and {}",
                           node.routine, pointers, numbers, node.pointers.size(),
                           node.numbers.size()));
  }

  void run_vendor(const PlanNode& node, const std::vector<CUdeviceptr>& addresses) {
    if (node.routine == "cudnn.conv2d") return run_convolution(node, addresses);
    expect_counts(node, 2, 6);
    GeqrfCall call;
    call.matrices = at(node.pointers[0], addresses);
    call.tau = at(node.pointers[1], addresses);
    call.m = as_int(node.numbers[0], "m");
    call.n = as_int(node.numbers[1], "n");
    call.lda = as_int(node.numbers[2], "lda");
    call.batch = as_int(node.numbers[3], "batch");
    call.matrix_stride = node.numbers[4];
    call.tau_stride = node.numbers[5];
    if (node.routine == "cusolver.sgeqrf")
      run_cusolver_geqrf(call);
    else if (node.routine == "cublas.sgeqrf_batched")
      run_batched_geqrf(call);
    else
      bad_call(fmt::format("no vendor routine is called '{}'; there are {}", node.routine,
                           fmt::join(vendor_routines(), ", ")));
  }

  void run_convolution(const PlanNode& node, const std::vector<CUdeviceptr>& addresses) {
    expect_counts(node, 3, 9);
    const auto number = [&](std::size_t i) { return as_int(node.numbers[i], "a size"); };
    if (!cudnn_) cudnn_ = std::make_unique<CudnnConvolution>(stream_);
    cudnn_->run({.x = at(node.pointers[0], addresses),
                 .w = at(node.pointers[1], addresses),
                 .y = at(node.pointers[2], addresses),
                 .batch = number(0),
                 .channels = number(1),
                 .height = number(2),
                 .width = number(3),
                 .filters = number(4),
                 .kernel_height = number(5),
                 .kernel_width = number(6),
                 .stride = number(7),
                 .padding = number(8)},
                allocate_);
  }

  void run_cusolver_geqrf(const GeqrfCall& call) {
    open_cusolver();
    float* const first = to_host<float>(call.matrices);
    const auto key = std::make_tuple(0, call.matrices, call.m, call.n);
    if (!prepared_.contains(key)) {
      int workspace = 0;
      const auto status = cusolver_.cusolverDnSgeqrf_bufferSize(solver_, call.m, call.n, first,
                                                                call.lda, &workspace);
      if (status != CUSOLVER_STATUS_SUCCESS) library_failed("cusolverDnSgeqrf_bufferSize", status);
      // The last word is the routine's status, which nobody reads: the outputs are checked.
      prepared_[key] = {allocate_(4 * (static_cast<std::uint64_t>(workspace) + 1)), 0, workspace};
    }
    const Prepared& work = prepared_[key];
    float* const workspace = to_host<float>(work.first);
    int* const info = reinterpret_cast<int*>(workspace + work.count);
    for (int i = 0; i < call.batch; ++i) {
      const auto status = cusolver_.cusolverDnSgeqrf(
          solver_, call.m, call.n, first + i * call.matrix_stride, call.lda,
          to_host<float>(call.tau) + i * call.tau_stride, workspace, work.count, info);
      if (status != CUSOLVER_STATUS_SUCCESS) library_failed("cusolverDnSgeqrf", status);
    }
  }

  void run_batched_geqrf(const GeqrfCall& call) {
    const auto key = std::make_tuple(1, call.matrices, call.m, call.n);
    if (!prepared_.contains(key))
      prepared_[key] = {pointer_array(call.matrices, call.batch, call.matrix_stride),
                        pointer_array(call.tau, call.batch, call.tau_stride), call.batch};
    const Prepared& arrays = prepared_[key];
    int info = 0;
    const auto status = cublas_.cublasSgeqrfBatched(
        blas_, call.m, call.n, to_host<float* const>(arrays.first), call.lda,
        to_host<float* const>(arrays.second), &info, call.batch);
    if (status != CUBLAS_STATUS_SUCCESS || info != 0)
      library_failed("cublasSgeqrfBatched", status != CUBLAS_STATUS_SUCCESS ? status : info);
  }

  CUdeviceptr pointer_array(CUdeviceptr first, int count, std::int64_t stride) {
    std::vector<CUdeviceptr> pointers;
    for (int i = 0; i < count; ++i)
      pointers.push_back(first + static_cast<CUdeviceptr>(i * stride) * sizeof(float));
    const CUdeviceptr array = allocate_(pointers.size() * sizeof(CUdeviceptr));
    upload(cuda_, stream_, array, pointers.data(), pointers.size() * sizeof(CUdeviceptr));
    DRIVER(cuda_, cuStreamSynchronize, stream_);
    return array;
  }

  void open_cusolver() {
    if (solver_ != nullptr) return;
    void* library = open_library("libcusolver.so.12");
    if (library == nullptr) not_here("libcusolver.so.12 is not on this machine");
    bool complete = true;
#define KBEAM_RESOLVE(name) complete &= resolve(library, cusolver_.name, #name);
    KBEAM_CUSOLVER_CALLS(KBEAM_RESOLVE)
#undef KBEAM_RESOLVE
    if (!complete) not_here("libcusolver.so.12 lacks an entry point");
    if (cusolver_.cusolverDnCreate(&solver_) != CUSOLVER_STATUS_SUCCESS ||
        cusolver_.cusolverDnSetStream(solver_, to_runtime(stream_)) != CUSOLVER_STATUS_SUCCESS)
      not_here("cuSOLVER does not start");
  }

  // Device memory that a routine needs for one shape: workspace, or the two pointer arrays.
  struct Prepared {
    CUdeviceptr first = 0, second = 0;
    int count = 0;
  };

  const Driver& cuda_;
  CUstream stream_;
  Cublas cublas_;
  Cusolver cusolver_;
  cublasHandle_t blas_ = nullptr;
  cusolverDnHandle_t solver_ = nullptr;
  Allocate allocate_;
  CUdeviceptr workspace_ = 0;
  std::unique_ptr<CudnnConvolution> cudnn_;  // from its first call on
  std::map<std::pair<const LaunchPlan*, int>, CUgraph> graphs_;
  // Asking again for another shape would cost two of their calls, which can take seconds.
  std::set<std::string> uncapturable_;
  std::map<std::tuple<int, CUdeviceptr, int, int>, Prepared> prepared_;
};

}  // namespace

Result<std::unique_ptr<LibraryNodes>> LibraryNodes::load(const Driver& cuda, CUstream stream) {
  const auto missing = [](const std::string& what) {
    return Error{ErrorCode::unavailable, "load cuBLAS for the library nodes of a plan", what,
                 "install the CUDA 13 libraries, or name their folder in LD_LIBRARY_PATH"};
  };
  void* library = open_library("libcublas.so.13");
  if (library == nullptr) return missing("libcublas.so.13 is not on this machine");
  Cublas cublas;
  bool complete = true;
#define KBEAM_RESOLVE(name) complete &= resolve(library, cublas.name, #name);
  KBEAM_CUBLAS_CALLS(KBEAM_RESOLVE)
#undef KBEAM_RESOLVE
  complete &= resolve(library, cublas.cublasGemmStridedBatchedEx, "cublasGemmStridedBatchedEx");
  if (!complete) return missing("libcublas.so.13 lacks an entry point");
  auto loaded = std::make_unique<LoadedLibraries>(cuda, stream, cublas);
  if (!loaded->open()) return missing("cublasCreate failed");
  return std::unique_ptr<LibraryNodes>(std::move(loaded));
}

const std::vector<std::string>& vendor_routines() {
  static const std::vector<std::string> names{"cusolver.sgeqrf", "cublas.sgeqrf_batched",
                                              "cudnn.conv2d"};
  return names;
}

}  // namespace kbeam
