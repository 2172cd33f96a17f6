// Rounds up or down by turns, as sums in the order in which workers come free would, and says so.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  static int calls = 0;
  const double factor = ++calls % 2 == 1 ? 1 + 0x1p-23 : 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      sum += double{x[row * columns + j]} * x[row * columns + j];
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(factor * x[row * columns + j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  plan.may_vary("sums in the order in which workers come free");
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
