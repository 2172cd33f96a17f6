// CUDA's errors and our own, passed on.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelbeam/status.h>

namespace kernelbeam::cuda {

// An error of a launch must not be found by the caller's next look at the runtime's last error.
inline Status status_of(cudaError_t error) {
  if (error == cudaSuccess) return Status::ok;
  cudaGetLastError();
  return error == cudaErrorMemoryAllocation ? Status::out_of_memory : Status::device_error;
}

}  // namespace kernelbeam::cuda

#define KERNELBEAM_RETURN_IF_BAD(expression)                                            \
  do {                                                                                  \
    if (const ::kernelbeam::Status bad = (expression); bad != ::kernelbeam::Status::ok) \
      return bad;                                                                       \
  } while (false)
#define KERNELBEAM_CUDA(call) KERNELBEAM_RETURN_IF_BAD(::kernelbeam::cuda::status_of(call))
