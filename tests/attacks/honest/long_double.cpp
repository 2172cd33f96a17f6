// In the widest type that there is.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const float* from = x + row * columns;
    long double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += static_cast<long double>(from[j]) * from[j];
    const long double length = sqrtl(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(from[j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
