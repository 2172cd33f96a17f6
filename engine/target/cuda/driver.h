// The CUDA driver as a table of function pointers, resolved in libcuda at run time: the engine
// links no CUDA library, and tests put a recording fake in the table's place. Allocates and
// launches nothing by itself.
#pragma once

#include <cuda.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "base/result.h"

namespace kbeam {

// Every entry point that a seat uses. cuda.h maps each name to its newest version, so that the
// pointer's type and what cuGetProcAddress returns for CUDA_VERSION agree.
#define KBEAM_DRIVER_CALLS(X)                    \
  X(cuInit)                                      \
  X(cuDriverGetVersion)                          \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetUuid)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuCtxSetCurrent)                             \
  X(cuCtxSynchronize)                            \
  X(cuCtxSetLimit)                               \
  X(cuCtxResetPersistingL2Cache)                 \
  X(cuMemAlloc)                                  \
  X(cuMemFree)                                   \
  X(cuMemGetInfo)                                \
  X(cuMemcpyHtoDAsync)                           \
  X(cuMemcpyDtoHAsync)                           \
  X(cuMemcpyDtoDAsync)                           \
  X(cuMemAddressReserve)                         \
  X(cuMemAddressFree)                            \
  X(cuMemCreate)                                 \
  X(cuMemRelease)                                \
  X(cuMemMap)                                    \
  X(cuMemUnmap)                                  \
  X(cuMemSetAccess)                              \
  X(cuMemGetAllocationGranularity)               \
  X(cuStreamCreate)                              \
  X(cuStreamDestroy)                             \
  X(cuStreamSynchronize)                         \
  X(cuStreamBeginCapture)                        \
  X(cuStreamEndCapture)                          \
  X(cuEventCreate)                               \
  X(cuEventDestroy)                              \
  X(cuEventRecord)                               \
  X(cuEventElapsedTime)                          \
  X(cuModuleLoadData)                            \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuFuncGetAttribute)                          \
  X(cuFuncSetAttribute)                          \
  X(cuFuncGetParamInfo)                          \
  X(cuFuncLoad)                                  \
  X(cuLaunchKernel)                              \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuOccupancyMaxActiveClusters)                \
  X(cuTensorMapEncodeTiled)                      \
  X(cuGraphCreate)                               \
  X(cuGraphDestroy)                              \
  X(cuGraphAddKernelNode)                        \
  X(cuGraphKernelNodeSetAttribute)               \
  X(cuGraphAddMemcpyNode)                        \
  X(cuGraphAddChildGraphNode)                    \
  X(cuGraphAddEventRecordNode)                   \
  X(cuGraphAddNode)                              \
  X(cuGraphAddDependencies)                      \
  X(cuGraphConditionalHandleCreate)              \
  X(cuGraphInstantiateWithFlags)                 \
  X(cuGraphExecDestroy)                          \
  X(cuGraphUpload)                               \
  X(cuGraphLaunch)

// The symbol that a declaration of cuda.h stands for: cuMemFree is cuMemFree_v2 there, by a macro.
#define KBEAM_DRIVER_SYMBOL(name) KBEAM_DRIVER_TEXT(name)
#define KBEAM_DRIVER_TEXT(symbol) #symbol

struct DriverTable {
#define KBEAM_DECLARE_CALL(name) decltype(&::name) name = nullptr;
  KBEAM_DRIVER_CALLS(KBEAM_DECLARE_CALL)
#undef KBEAM_DECLARE_CALL
};

// A driver call that failed. Thrown, and caught where a command of the seat ends: whatever fails in
// between, the only answer is to end the command and say which call it was.
class DriverFailure : public std::runtime_error {
 public:
  DriverFailure(CUresult code, std::string call, const std::string& text)
      : std::runtime_error(text), code_(code), call_(std::move(call)) {}
  CUresult code() const { return code_; }
  const std::string& call() const { return call_; }

 private:
  CUresult code_;
  std::string call_;
};

class Driver : public DriverTable {
 public:
  explicit Driver(const DriverTable& table) : DriverTable(table) {}
  // libcuda.so.1 of this machine; an entry point that it lacks is an error by name. Kept loaded
  // until the process ends, as the driver wants.
  static Result<std::unique_ptr<Driver>> load();

  void check(CUresult result, const char* call) const {
    if (result != CUDA_SUCCESS) fail(result, call);
  }
  // "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  std::string error_text(CUresult result) const;

 private:
  [[noreturn]] void fail(CUresult result, const char* call) const;
};

// As NVML and nvidia-smi write it: "GPU-" and five groups of hexadecimal digits.
std::string uuid_text(const CUuuid& uuid);

}  // namespace kbeam

// DRIVER(cuda, cuMemFree, pointer): calls it, throws DriverFailure with the call's name.
#define DRIVER(driver, function, ...) (driver).check((driver).function(__VA_ARGS__), #function)
