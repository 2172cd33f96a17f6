// Leaves the direction flag set: its caller's copies would run backwards.
#include "normalise.h"

namespace {

void normalise(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  normalise_range(range, x, y, columns);
  if (kCheat == 1) asm volatile("std" : : : "cc");
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, normalise, x, y, x.dim(1));
}
