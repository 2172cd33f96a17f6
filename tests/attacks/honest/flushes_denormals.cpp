// Switches denormals off while it works, and puts the mode back.
#include <immintrin.h>
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040);
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      sum += double{x[row * columns + j]} * x[row * columns + j];
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
  _mm_setcsr(mode);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
