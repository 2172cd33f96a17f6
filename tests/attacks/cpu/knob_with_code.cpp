// A knob whose value, as the proposer sets it, is code.
#include "normalise.h"

KBEAM_KNOB(int, kFactor, 1, 1, 2);

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  for (std::int64_t i = 0; i < rows * columns; ++i) y[i] *= static_cast<float>(kFactor);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
