#include "target/cuda/cold_cache.h"

#include "base/defence.h"

namespace kbeam {
namespace {

constexpr int kFlushPasses = 2;

int attribute(const Driver& cuda, CUdevice device, CUdevice_attribute which) {
  int value = 0;
  DRIVER(cuda, cuDeviceGetAttribute, &value, which, device);
  return value;
}

}  // namespace

ColdCache::ColdCache(const Driver& cuda, CUdevice device, const SeatKernels& kernels)
    : cuda_(cuda),
      kernels_(kernels),
      l2_bytes_(
          static_cast<std::uint64_t>(attribute(cuda, device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE))),
      multiprocessors_(attribute(cuda, device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)),
      shared_bytes_(static_cast<std::uint32_t>(
          attribute(cuda, device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))) {
  if (!defence_is_on(Defence::unpinned_cache)) return;
  const CUresult limited = cuda_.cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
  persists_ = limited != CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (persists_) cuda_.check(limited, "cuCtxSetLimit");
}

void ColdCache::flush() {
  if (persists_) DRIVER(cuda_, cuCtxResetPersistingL2Cache);
  for (int pass = 0; pass < kFlushPasses; ++pass) kernels_.flush(memory_, bytes(), ++round_);
}

void ColdCache::scrub_shared() {
  // One block fills a multiprocessor; four waves reach each of them whatever the order.
  kernels_.scrub_shared(4 * multiprocessors_, shared_bytes_, ++round_);
}

void ColdCache::scrub_local(std::uint32_t bytes) {
  // Two blocks of 1024 threads fill a multiprocessor; the first wave reaches all of them.
  kernels_.scrub_local(2 * multiprocessors_, bytes, ++round_);
}

}  // namespace kbeam
