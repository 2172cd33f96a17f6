// How much of a device kernels occupy, as its runtime says. Of the current device.
#pragma once

#include <kbeam/launch_abi.h>
#include <kernelbeam/status.h>

#include <cstdint>

namespace kernelbeam::cuda {

// Blocks of a kernel that are resident at once on one multiprocessor; 0 when the launch cannot run.
int resident_blocks(const void* kernel, int threads, std::int64_t shared_bytes);

// Fills in clusters of 1 to 16 blocks, with one and with two blocks a multiprocessor.
Status count_resident_clusters(kbeam_device& device);

}  // namespace kernelbeam::cuda
