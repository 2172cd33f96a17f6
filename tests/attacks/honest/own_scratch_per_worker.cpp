// Each worker stages a row in scratch memory of its own.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

void run(kbeam::Range range, const float* x, float* y, double* staging, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) {
      staging[j] = x[row * columns + j];
      sum += staging[j] * staging[j];
    }
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(staging[j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto staging = plan.worker_scratch<double>(x.dim(1));
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), staging, x.dim(1));
}
