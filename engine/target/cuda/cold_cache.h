// A cold start for a call: no line of the L2 cache and no word of shared memory is left from
// before. The memory that it writes is the judge's; nothing here measures that it worked (the self
// test does).
#pragma once

#include <cstdint>

#include "target/cuda/device_memory.h"
#include "target/cuda/seat_kernels.h"

namespace kbeam {

class ColdCache {
 public:
  // Sets the persisting part of the L2 to nothing, so that no access can reserve lines; where the
  // device has no such part (MIG slices), there is nothing to set.
  ColdCache(const Driver& cuda, CUdevice device, const SeatKernels& kernels);

  // Twice the L2, in the judge's memory.
  std::uint64_t bytes() const { return 2 * l2_bytes_; }
  void use(CUdeviceptr memory) { memory_ = memory; }

  // In stream order; what persists is demoted first, since a flush does not evict it.
  void flush();
  void scrub_shared();
  // The local memory of every thread that can be resident, `bytes` deep.
  void scrub_local(std::uint32_t bytes);

 private:
  const Driver& cuda_;
  const SeatKernels& kernels_;
  std::uint64_t l2_bytes_ = 0;
  bool persists_ = false;
  int multiprocessors_ = 0;
  std::uint32_t shared_bytes_ = 0;
  CUdeviceptr memory_ = 0;
  std::uint32_t round_ = 0;
};

}  // namespace kbeam
