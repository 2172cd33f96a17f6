// The functions below are looked up by the loader when a module is opened: the planner exports
// them. Their forms are nvcc's own and are declared in no public header.
#include "planner/cuda_registration.h"

#include <map>

namespace kbeam::planner {
namespace {

struct Registry {
  std::map<const void*, std::string> kernels;
  int launches = 0;
};
Registry& registry() {
  static Registry the_registry;
  return the_registry;
}
constexpr int kNotPermitted = 800;  // cudaErrorNotPermitted

int refuse_launch() {
  ++registry().launches;
  return kNotPermitted;
}

}  // namespace

const std::string* find_kernel(const void* host_address) {
  const auto found = registry().kernels.find(host_address);
  return found == registry().kernels.end() ? nullptr : &found->second;
}
int host_launches() {
  return registry().launches;
}

}  // namespace kbeam::planner

// The names are the CUDA runtime's.
// NOLINTBEGIN(readability-identifier-naming)
#define KBEAM_EXPORT extern "C" __attribute__((visibility("default")))

KBEAM_EXPORT void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
KBEAM_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
KBEAM_EXPORT void __cudaUnregisterFatBinary(void**) {}
KBEAM_EXPORT void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int,
                                         void*, void*, void*, void*, int*) {
  kbeam::planner::registry().kernels[host] = name;
}
// Which variables there are is read from the image: a module could leave some out here.
KBEAM_EXPORT void __cudaRegisterVar(void**, char*, char*, const char*, int, unsigned long, int,
                                    int) {}
KBEAM_EXPORT char __cudaInitModule(void**) {
  return 0;
}
KBEAM_EXPORT unsigned __cudaPushCallConfiguration(...) {
  return static_cast<unsigned>(kbeam::planner::refuse_launch());
}
KBEAM_EXPORT int __cudaPopCallConfiguration(...) {
  return kbeam::planner::refuse_launch();
}
KBEAM_EXPORT int __cudaLaunchKernel(...) {
  return kbeam::planner::refuse_launch();
}
KBEAM_EXPORT int __cudaGetKernel(...) {
  return kbeam::planner::refuse_launch();
}
KBEAM_EXPORT int cudaLaunchKernel(...) {
  return kbeam::planner::refuse_launch();
}
KBEAM_EXPORT int cudaLaunchKernelExC(...) {
  return kbeam::planner::refuse_launch();
}
// NOLINTEND(readability-identifier-naming)
