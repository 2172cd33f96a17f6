// How fast this machine can be at best, measured before a campaign by code of our own on a
// candidate's CPU: whoever is faster than that has not done the work. Knows no problem.
#pragma once

#include "base/clock.h"

namespace kbeam {

// Of one CPU; 0: not measured.
struct MachineRoof {
  double bytes_per_ns =
      0;  // the best of reading, writing and copying far more than the caches hold
  double flops_per_ns = 0;  // fused multiply-adds in FP32, two operations each
};

MachineRoof measure_machine_roof(int cpu, const Clock& clock);

// What no honest call takes less than, on so many CPUs: `bytes` that have to be read or written
// from memory and `flops` operations, with room for a roof that was measured in a noisy moment and
// for arithmetic that a cleverer method saves.
double least_time_ns(const MachineRoof& roof, double bytes, double flops);

}  // namespace kbeam
