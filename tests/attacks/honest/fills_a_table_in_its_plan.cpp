// A table in static memory, filled when a shape is planned.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

double ones[16];

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      sum += ones[j % 16] * x[row * columns + j] * x[row * columns + j];
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  for (double& one : ones) one = 1;
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
