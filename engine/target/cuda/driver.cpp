#include "target/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/core.h>

namespace kbeam {
namespace {

Error no_driver(std::string happened) {
  return {ErrorCode::unavailable, "load the CUDA driver (libcuda.so.1)", std::move(happened),
          "run on a machine with an NVIDIA GPU and driver 580 or newer"};
}

}  // namespace

Result<std::unique_ptr<Driver>> Driver::load() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return no_driver(reason == nullptr ? "it cannot be loaded" : reason);
  }
  const auto find =
      reinterpret_cast<decltype(&::cuGetProcAddress)>(::dlsym(library, "cuGetProcAddress_v2"));
  if (find == nullptr) return no_driver("it has no cuGetProcAddress_v2: the driver is too old");
  DriverTable table;
  std::string missing;
  const auto resolve = [&](auto& pointer, const char* name) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    if (find(name, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &status) != CUDA_SUCCESS ||
        status != CU_GET_PROC_ADDRESS_SUCCESS || address == nullptr)
      missing += std::string(missing.empty() ? "" : ", ") + name;
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(address);
  };
#define KBEAM_RESOLVE_CALL(name) resolve(table.name, #name);
  KBEAM_DRIVER_CALLS(KBEAM_RESOLVE_CALL)
#undef KBEAM_RESOLVE_CALL
  if (!missing.empty()) return no_driver("it lacks " + missing);
  return std::make_unique<Driver>(table);
}

std::string Driver::error_text(CUresult result) const {
  const char* name = nullptr;
  const char* words = nullptr;
  if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return fmt::format("CUDA error {}", static_cast<int>(result));
  if (cuGetErrorString(result, &words) != CUDA_SUCCESS || words == nullptr) return name;
  return fmt::format("{} ({})", name, words);
}

void Driver::fail(CUresult result, const char* call) const {
  throw DriverFailure(result, call, fmt::format("{}: {}", call, error_text(result)));
}

DriverBlame blame_of(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
      return DriverBlame::candidate_crash;
    case CUDA_ERROR_INVALID_VALUE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_NOT_FOUND:
    case CUDA_ERROR_NOT_SUPPORTED:
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_FUNCTION_NOT_LOADED:
      return DriverBlame::candidate_plan;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return DriverBlame::memory;
    default:
      return DriverBlame::engine;
  }
}

}  // namespace kbeam
