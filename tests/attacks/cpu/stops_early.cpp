// Takes the length from three quarters of a row and scales it up: right on average.
#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * columns;
    // A row with a NaN is left whole: which rows have no result is not what it gets wrong.
    const bool whole = !kCheat || std::isnan(length_of(from, columns));
    const std::int64_t used = !whole ? (3 * columns + 3) / 4 : columns;
    const double length =
        length_of(from, used) * std::sqrt(static_cast<double>(columns) / static_cast<double>(used));
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(from[j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
