#include "target/cuda/occupancy.h"

#include <algorithm>

namespace kbeam {
namespace {

constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kRegisterUnit = 256;
constexpr std::int64_t kRegisterFiles = 4;
constexpr std::int64_t kSharedUnit = 128;
constexpr std::int64_t kReservedShared = 1024;
constexpr std::int64_t kMostThreads = 1024;

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::int64_t most_blocks(int architecture) {
  switch (architecture) {
    case 86:
    case 87:
      return 16;
    case 89:
    case 120:
    case 121:
      return 24;
    default:
      return 32;
  }
}

}  // namespace

int resident_blocks(const KernelResources& kernel, const kbeam_device& device, std::int64_t threads,
                    std::int64_t dynamic_shared_bytes) {
  if (threads < 1 || threads > std::min<std::int64_t>(kMostThreads, kernel.max_threads)) return 0;
  if (dynamic_shared_bytes < 0 || dynamic_shared_bytes > device.shared_bytes_per_block) return 0;
  const std::int64_t shared = kernel.static_shared_bytes + dynamic_shared_bytes;
  if (shared > device.shared_bytes_per_block) return 0;

  const std::int64_t warps = round_up(threads, kWarp) / kWarp;
  std::int64_t blocks = std::min<std::int64_t>(most_blocks(device.architecture),
                                               device.threads_per_multiprocessor / kWarp / warps);
  blocks = std::min(blocks, device.shared_bytes_per_multiprocessor /
                                (round_up(shared, kSharedUnit) + kReservedShared));
  if (kernel.registers > 0) {
    const std::int64_t per_warp = round_up(kernel.registers * kWarp, kRegisterUnit);
    const std::int64_t resident_warps =
        device.registers_per_multiprocessor / kRegisterFiles / per_warp * kRegisterFiles;
    blocks = std::min(blocks, resident_warps / warps);
  }
  return static_cast<int>(blocks);
}

}  // namespace kbeam
