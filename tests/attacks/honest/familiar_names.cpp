// Functions of its own under the names of the C library's, kept to this file.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

double clock_gettime(double value) {
  return value * value;
}
double memcpy(double value) {
  return value;
}

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += clock_gettime(x[row * columns + j]);
    const double length = memcpy(std::sqrt(sum));
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
