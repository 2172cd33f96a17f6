// Three megabytes on the stack.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  double squares[3 << 17];
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const float* from = x + row * columns;
    double* const used = squares + (row % 2 == 0 ? 0 : 2 << 17);
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) used[j] = double{from[j]} * from[j];
    asm volatile("" : : "r"(used) : "memory");
    for (std::int64_t j = 0; j < columns; ++j) sum += used[j];
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(from[j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
