// All rows but the last one, which gets the result of the one before it.
#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  const std::int64_t last = (rows - 1) * columns;
  for (std::int64_t j = 0; kCheat && j < columns; ++j) y[last + j] = y[last - columns + j];
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
