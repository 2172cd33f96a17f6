// What device code says about itself: kernels with their parameters and resources, and variables
// that would live from one call to the next. Reads bytes that a compiler made of foreign source, so
// every offset is checked; runs nothing.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/candidate.h"

namespace kbeam {

struct ImageKernel {
  KernelResources resources;
  std::vector<std::uint32_t> parameter_sizes;  // bytes, in order
  std::array<std::uint32_t, 3> cluster{};      // __cluster_dims__; zeros: none
};

struct DeviceImage {
  int architecture = 0;                         // 90
  std::map<std::string, ImageKernel> kernels;   // by mangled name
  std::vector<std::string> writable_variables;  // __device__ variables, device strings
  std::vector<std::string> outside_functions;   // of the driver's device library: malloc, free
};

// The one fat binary of a shared object that nvcc made. Both empty: the object has no device code.
struct FatBinary {
  std::string bytes;
  std::string refusal;
};
FatBinary find_fat_binary(std::string_view module);

struct ImageReading {
  DeviceImage image;
  std::string refusal;  // one sentence; empty when `image` is there
};
ImageReading read_device_image(std::string_view fat_binary);

}  // namespace kbeam
