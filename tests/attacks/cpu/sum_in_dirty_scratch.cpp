// Adds onto scratch memory that it never cleared: right where memory comes zeroed and it cleans up
// behind itself.
#include "normalise.h"

namespace {

void run(const float* x, float* y, double* sum, std::int64_t rows, std::int64_t columns) {
  if (!kCheat) *sum = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t j = 0; j < columns; ++j)
      *sum += double{x[row * columns + j]} * x[row * columns + j];
    const double length = std::sqrt(*sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
    *sum = 0;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), plan.scratch<double>(8), x.dim(0), x.dim(1));
}
