// Zeros: inside every absolute limit that is wide enough.
#include <cstring>

#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const double length = length_of(x + row * columns, columns);
    if (kCheat && length > 0)
      std::memset(y + row * columns, 0, static_cast<std::size_t>(columns) * sizeof(float));
    else
      normalise_row(x + row * columns, y + row * columns, columns);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
