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
  DriverTable table;
  std::string missing;
  const auto resolve = [&](auto& pointer, const char* symbol) {
    void* const address = ::dlsym(library, symbol);
    if (address == nullptr) missing += std::string(missing.empty() ? "" : ", ") + symbol;
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(address);
  };
  // cuGetProcAddress would not do: it answers with the newest form of a call, whose parameters may
  // be others than cuda.h declares under that name (cuCtxSynchronize since CUDA 13).
#define KBEAM_RESOLVE_CALL(name) resolve(table.name, KBEAM_DRIVER_SYMBOL(name));
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

std::string uuid_text(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(uuid.bytes[i])));
  }
  return text;
}

}  // namespace kbeam
