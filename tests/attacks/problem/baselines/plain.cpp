// One row after the other, the length in double.
#include <kbeam/candidate.h>

#include <cmath>

namespace {

void normalise(kbeam::Range rows, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* from = x + row * columns;
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += double{from[j]} * from[j];
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(from[j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, normalise, x, args.output<float>("y"), x.dim(1));
}
