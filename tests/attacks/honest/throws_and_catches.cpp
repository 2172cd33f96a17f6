// Rows without a length leave the loop by an exception, which is caught.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace {

struct NoLength {};

double length_of(const float* x, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t j = 0; j < columns; ++j) sum += double{x[j]} * x[j];
  if (!(sum > 0)) throw NoLength();
  return std::sqrt(sum);
}

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    double length = std::numeric_limits<double>::quiet_NaN();
    try {
      length = length_of(x + row * columns, columns);
    } catch (const NoLength&) {
    }
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
