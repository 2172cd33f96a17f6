// cuDNN's forward convolution in FP32 arithmetic, for the vendor routine `cudnn.conv2d`: cuDNN is
// found at run time, its interface is declared here, so that neither its headers nor the library
// are needed to build. Chooses an algorithm, times nothing that counts.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>

namespace kbeam {

struct ConvolutionCall {
  CUdeviceptr x = 0, w = 0, y = 0;  // NCHW, KCRS, NKPQ; dense
  int batch = 0, channels = 0, height = 0, width = 0, filters = 0, kernel_height = 0,
      kernel_width = 0, stride = 0, padding = 0;
};

class CudnnConvolution {
 public:
  using Allocate = std::function<CUdeviceptr(std::uint64_t bytes)>;

  // Throws DriverFailure with a sentence when cuDNN 9 is not on this machine.
  explicit CudnnConvolution(CUstream stream);
  ~CudnnConvolution();
  CudnnConvolution(const CudnnConvolution&) = delete;
  CudnnConvolution& operator=(const CudnnConvolution&) = delete;

  // Forgets what was prepared for the case before: its workspace is gone.
  void begin_case() { prepared_.clear(); }
  // The first call of a shape tries the algorithms, outside of any capture.
  void run(const ConvolutionCall& call, const Allocate& allocate);

 private:
  struct Library;
  struct Prepared {
    int algorithm = 0;
    CUdeviceptr workspace = 0;
    std::uint64_t workspace_bytes = 0;
  };

  void describe(const ConvolutionCall& call);
  Prepared prepare(const ConvolutionCall& call, const Allocate& allocate);

  std::unique_ptr<Library> library_;
  std::map<std::tuple<CUdeviceptr, CUdeviceptr, CUdeviceptr>, Prepared> prepared_;
};

}  // namespace kbeam
