#include "target/cuda/cudnn_convolution.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "target/cuda/driver.h"

namespace kbeam {
namespace {

// Of cuDNN's C interface, version 9: handles and descriptors are pointers, enumerations are ints.
using Handle = void*;
using Descriptor = void*;
constexpr int kSuccess = 0;
constexpr int kNchw = 0;
constexpr int kFloat = 0;
constexpr int kCrossCorrelation = 1;
constexpr int kFmaMath = 3;  // FP32 multiplications and sums; no TF32
// Implicit GEMM, with a table of indices, explicit GEMM, direct: sums of products as they are. FFT
// and Winograd round differently and lose elements that are small beside their neighbours.
constexpr int kSummingAlgorithms = 4;
constexpr int kAlgorithms = 8;
constexpr std::uint64_t kMostWorkspace = 768ull << 20;

struct AlgorithmTime {
  int algorithm;
  int status;
  float milliseconds;
  std::size_t workspace_bytes;
  int determinism;
  int math;
  int reserved[3];
};

[[noreturn]] void not_here(const std::string& sentence) {
  throw DriverFailure(CUDA_ERROR_UNKNOWN, "cudnn.conv2d", sentence);
}

void check(int status, const char* call) {
  if (status != kSuccess) not_here(fmt::format("{} returned status {}", call, status));
}

}  // namespace

struct CudnnConvolution::Library {
  // NOLINTBEGIN(readability-identifier-naming): the library's own names
  int (*cudnnCreate)(Handle*) = nullptr;
  int (*cudnnDestroy)(Handle) = nullptr;
  int (*cudnnSetStream)(Handle, CUstream) = nullptr;
  int (*cudnnCreateTensorDescriptor)(Descriptor*) = nullptr;
  int (*cudnnCreateFilterDescriptor)(Descriptor*) = nullptr;
  int (*cudnnCreateConvolutionDescriptor)(Descriptor*) = nullptr;
  int (*cudnnSetTensor4dDescriptor)(Descriptor, int format, int type, int, int, int, int) = nullptr;
  int (*cudnnSetFilter4dDescriptor)(Descriptor, int type, int format, int, int, int, int) = nullptr;
  int (*cudnnSetConvolution2dDescriptor)(Descriptor, int pad_h, int pad_w, int stride_h,
                                         int stride_w, int dilation_h, int dilation_w, int mode,
                                         int type) = nullptr;
  int (*cudnnSetConvolutionMathType)(Descriptor, int math) = nullptr;
  int (*cudnnFindConvolutionForwardAlgorithmEx)(Handle, Descriptor, const void* x, Descriptor,
                                                const void* w, Descriptor, Descriptor, void* y,
                                                int wanted, int* returned, AlgorithmTime*,
                                                void* workspace, std::size_t bytes) = nullptr;
  int (*cudnnConvolutionForward)(Handle, const void* alpha, Descriptor, const void* x, Descriptor,
                                 const void* w, Descriptor, int algorithm, void* workspace,
                                 std::size_t bytes, const void* beta, Descriptor,
                                 void* y) = nullptr;
  // NOLINTEND(readability-identifier-naming)
  Handle handle = nullptr;
  Descriptor x = nullptr, w = nullptr, y = nullptr, convolution = nullptr;

  Library() {
    // Its parts are opened by name as they are needed, beside it.
    void* const opened = ::dlopen("libcudnn.so.9", RTLD_NOW | RTLD_GLOBAL);
    if (opened == nullptr)
      not_here(
          "libcudnn.so.9 is not on this machine; install cuDNN 9 for CUDA 13, or name its folder "
          "in "
          "LD_LIBRARY_PATH");
    std::string missing;
    const auto resolve = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(opened, name));
      if (function == nullptr) missing = name;
    };
#define KBEAM_RESOLVE(name) resolve(name, #name)
    KBEAM_RESOLVE(cudnnCreate);
    KBEAM_RESOLVE(cudnnDestroy);
    KBEAM_RESOLVE(cudnnSetStream);
    KBEAM_RESOLVE(cudnnCreateTensorDescriptor);
    KBEAM_RESOLVE(cudnnCreateFilterDescriptor);
    KBEAM_RESOLVE(cudnnCreateConvolutionDescriptor);
    KBEAM_RESOLVE(cudnnSetTensor4dDescriptor);
    KBEAM_RESOLVE(cudnnSetFilter4dDescriptor);
    KBEAM_RESOLVE(cudnnSetConvolution2dDescriptor);
    KBEAM_RESOLVE(cudnnSetConvolutionMathType);
    KBEAM_RESOLVE(cudnnFindConvolutionForwardAlgorithmEx);
    KBEAM_RESOLVE(cudnnConvolutionForward);
#undef KBEAM_RESOLVE
    if (!missing.empty()) not_here("libcudnn.so.9 lacks " + missing);
  }
};

CudnnConvolution::CudnnConvolution(CUstream stream) : library_(std::make_unique<Library>()) {
  Library& cudnn = *library_;
  check(cudnn.cudnnCreate(&cudnn.handle), "cudnnCreate");
  check(cudnn.cudnnSetStream(cudnn.handle, stream), "cudnnSetStream");
  for (Descriptor* tensor : {&cudnn.x, &cudnn.y})
    check(cudnn.cudnnCreateTensorDescriptor(tensor), "cudnnCreateTensorDescriptor");
  check(cudnn.cudnnCreateFilterDescriptor(&cudnn.w), "cudnnCreateFilterDescriptor");
  check(cudnn.cudnnCreateConvolutionDescriptor(&cudnn.convolution),
        "cudnnCreateConvolutionDescriptor");
}

// Descriptors are small and end with the seat's process.
CudnnConvolution::~CudnnConvolution() {
  if (library_->handle != nullptr) library_->cudnnDestroy(library_->handle);
}

void CudnnConvolution::describe(const ConvolutionCall& call) {
  Library& cudnn = *library_;
  const auto out = [&](int size, int kernel) {
    return (size + 2 * call.padding - kernel) / call.stride + 1;
  };
  check(cudnn.cudnnSetTensor4dDescriptor(cudnn.x, kNchw, kFloat, call.batch, call.channels,
                                         call.height, call.width),
        "cudnnSetTensor4dDescriptor of X");
  check(cudnn.cudnnSetFilter4dDescriptor(cudnn.w, kFloat, kNchw, call.filters, call.channels,
                                         call.kernel_height, call.kernel_width),
        "cudnnSetFilter4dDescriptor");
  check(cudnn.cudnnSetTensor4dDescriptor(cudnn.y, kNchw, kFloat, call.batch, call.filters,
                                         out(call.height, call.kernel_height),
                                         out(call.width, call.kernel_width)),
        "cudnnSetTensor4dDescriptor of Y");
  check(cudnn.cudnnSetConvolution2dDescriptor(cudnn.convolution, call.padding, call.padding,
                                              call.stride, call.stride, 1, 1, kCrossCorrelation,
                                              kFloat),
        "cudnnSetConvolution2dDescriptor");
  check(cudnn.cudnnSetConvolutionMathType(cudnn.convolution, kFmaMath),
        "cudnnSetConvolutionMathType");
}

CudnnConvolution::Prepared CudnnConvolution::prepare(const ConvolutionCall& call,
                                                     const Allocate& allocate) {
  const Library& cudnn = *library_;
  Prepared prepared{.workspace = allocate(kMostWorkspace), .workspace_bytes = kMostWorkspace};
  AlgorithmTime times[kAlgorithms] = {};
  int returned = 0;
  check(cudnn.cudnnFindConvolutionForwardAlgorithmEx(
            cudnn.handle, cudnn.x, reinterpret_cast<const void*>(call.x), cudnn.w,
            reinterpret_cast<const void*>(call.w), cudnn.convolution, cudnn.y,
            reinterpret_cast<void*>(call.y), kAlgorithms, &returned, times,
            reinterpret_cast<void*>(prepared.workspace), kMostWorkspace),
        "cudnnFindConvolutionForwardAlgorithmEx");
  // They come sorted by time.
  const auto* const best = std::find_if(times, times + returned, [](const AlgorithmTime& one) {
    return one.status == kSuccess && one.algorithm < kSummingAlgorithms;
  });
  if (best == times + returned) not_here("cuDNN has no algorithm for this convolution");
  prepared.algorithm = best->algorithm;
  return prepared;
}

void CudnnConvolution::run(const ConvolutionCall& call, const Allocate& allocate) {
  describe(call);
  const auto key = std::make_tuple(call.x, call.w, call.y);
  if (!prepared_.contains(key)) prepared_[key] = prepare(call, allocate);
  const Prepared& prepared = prepared_[key];
  const Library& cudnn = *library_;
  const float one = 1, zero = 0;
  check(cudnn.cudnnConvolutionForward(
            cudnn.handle, &one, cudnn.x, reinterpret_cast<const void*>(call.x), cudnn.w,
            reinterpret_cast<const void*>(call.w), cudnn.convolution, prepared.algorithm,
            reinterpret_cast<void*>(prepared.workspace), prepared.workspace_bytes, &zero, cudnn.y,
            reinterpret_cast<void*>(call.y)),
        "cudnnConvolutionForward");
}

}  // namespace kbeam
