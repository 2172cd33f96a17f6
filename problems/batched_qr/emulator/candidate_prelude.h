// Included before a .cu candidate by the host compiler: the candidate then describes itself to an
// EmulatedPlan. It must not include anything but kbeam/candidate.h and standard headers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "emulated_plan.h"

// candidate.h gives the CPU's contract to a host compiler; here it must be the GPU's.
#define __CUDACC__
#include <kbeam/candidate.h>
#undef __CUDACC__

#undef KBEAM_PLAN
#define KBEAM_PLAN(plan, args)                                                               \
  static void describe_emulated(kbeam::EmulatedPlan& plan, const kbeam::EmulatedArgs& args); \
  extern "C" __attribute__((visibility("default"))) void kbeam_emulated_plan(                \
      kbeam::EmulatedPlan& plan, const kbeam::EmulatedArgs& args) {                          \
    describe_emulated(plan, args);                                                           \
  }                                                                                          \
  static void describe_emulated(kbeam::EmulatedPlan& plan, const kbeam::EmulatedArgs& args)
