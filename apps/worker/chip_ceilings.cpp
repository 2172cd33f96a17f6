// The arithmetic of ceilings, apart from the driver so that it is tested everywhere.
#include "apps/worker/device_identity.h"

namespace kbeam {
namespace {

// Dense FP16 operations that the tensor cores of one multiprocessor do in a clock: the fastest
// unit that a problem with FP16 data or better could use.
double flops_per_clock(int architecture) {
  switch (architecture / 10) {
    case 8:
      return 2048;
    case 9:
      return 4096;
    case 10:
      return 8192;
    default:
      return 0;
  }
}

}  // namespace

DeviceCeilings ceilings_of(const ChipFacts& chip) {
  DeviceCeilings ceilings;
  // Double data rate: two transfers a memory clock.
  ceilings.bytes_per_s = 2 * chip.memory_clock_hz * chip.memory_bus_bits / 8;
  ceilings.flops_per_s = flops_per_clock(chip.architecture) * chip.multiprocessors * chip.clock_hz;
  ceilings.l2_bytes = chip.l2_bytes;
  return ceilings;
}

}  // namespace kbeam
