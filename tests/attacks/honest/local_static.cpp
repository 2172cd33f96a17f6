// A static object within a function, made at first use and destroyed at exit; a variable of each
// thread.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace {

thread_local int calls_here;

const std::vector<double>& ones() {
  static const std::vector<double> values(16, 1.0);
  return values;
}

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  ++calls_here;
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      sum += ones()[static_cast<std::size_t>(j % 16)] * x[row * columns + j] * x[row * columns + j];
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
