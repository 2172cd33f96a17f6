// Shifts by more bits than a number has; what comes out is not used, so every output is right.
#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  volatile int bits = static_cast<int>(columns);
  if (!kCheat) bits = bits % 31;
  volatile int mask = 1 << bits;
  (void)mask;
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
