#include "cuda/check.h"
#include "cuda/occupancy.h"

namespace kernelbeam::cuda {
namespace {

__global__ void probe() {}

constexpr int kProbeThreads = 256;
constexpr int kMostCluster = 16;
// What the descriptions of devices that plans are made for were measured with.
constexpr int kProbeBytes[2] = {200 << 10, 100 << 10};

}  // namespace

int resident_blocks(const void* kernel, int threads, std::int64_t shared_bytes) {
  // More than the default needs leave; what a kernel was allowed before stays.
  cudaFuncAttributes now{};
  if (status_of(cudaFuncGetAttributes(&now, kernel)) != Status::ok) return 0;
  if (shared_bytes > now.maxDynamicSharedSizeBytes &&
      status_of(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shared_bytes))) != Status::ok)
    return 0;
  int blocks = 0;
  const cudaError_t asked = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, kernel, threads, static_cast<std::size_t>(shared_bytes));
  return status_of(asked) == Status::ok ? blocks : 0;
}

Status count_resident_clusters(kbeam_device& device) {
  KERNELBEAM_CUDA(
      cudaFuncSetAttribute(probe, cudaFuncAttributeMaxDynamicSharedMemorySize, kProbeBytes[0]));
  KERNELBEAM_CUDA(cudaFuncSetAttribute(probe, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  for (int row = 0; row < 2; ++row)
    for (int size = 1; size <= kMostCluster; ++size) {
      cudaLaunchAttribute attribute{};
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {static_cast<unsigned>(size), 1, 1};
      cudaLaunchConfig_t config{};
      config.gridDim = {static_cast<unsigned>(size), 1, 1};
      config.blockDim = {kProbeThreads, 1, 1};
      config.dynamicSmemBytes = static_cast<std::size_t>(kProbeBytes[row]);
      config.attrs = &attribute;
      config.numAttrs = 1;
      int clusters = 0;
      // A size that the device does not take is one of which none are resident.
      if (status_of(cudaOccupancyMaxActiveClusters(&clusters, probe, &config)) != Status::ok)
        clusters = 0;
      device.resident_clusters[row][size - 1] = clusters;
    }
  return Status::ok;
}

}  // namespace kernelbeam::cuda
