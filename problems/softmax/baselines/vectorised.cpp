// Baseline: three passes over each row, plain loops that the compiler vectorises at -O3
// -march=native. Partial maxima and sums stand in separate lanes, since the compiler may not
// reorder a floating-point reduction by itself.
#include <kbeam/candidate.h>

#include <bit>
#include <limits>

KBEAM_KNOB(int, kLanes, 16, 8, 16, 32);

namespace {

// e^d times 2^64 for d <= 0: so biased, a result below FLT_MIN is still a normal number until the
// last product, which rounds it as IEEE wants. 2^round(d log2 e) goes into the exponent field, the
// rest into a polynomial.
inline float biased_exp(float d) {
  constexpr float kMagic = 0x1.8p23f + 127 + 64;
  const float clamped = d < -130.0f ? -130.0f : d;
  const float shifted = clamped * 1.44269504f + kMagic;
  const float r = clamped * 1.44269504f - (shifted - kMagic);
  float p = 0.000153458122f;
  p = p * r + 0.00133999312f;
  p = p * r + 0.00961848896f;
  p = p * r + 0.0555032878f;
  p = p * r + 0.240226469f;
  p = p * r + 0.693147206f;
  p = p * r + 1.0f;
  return p * std::bit_cast<float>(std::bit_cast<std::int32_t>(shifted) << 23);
}

float largest(const float* x, std::int64_t columns) {
  float most = -std::numeric_limits<float>::infinity();
#pragma omp simd reduction(max : most) simdlen(kLanes)
  for (std::int64_t j = 0; j < columns; ++j) most = x[j] > most ? x[j] : most;
  return most;
}

float exponentials(const float* __restrict x, float* __restrict y, std::int64_t columns,
                   float most) {
  float sum = 0;
#pragma omp simd reduction(+ : sum) simdlen(kLanes)
  for (std::int64_t j = 0; j < columns; ++j) sum += y[j] = biased_exp(x[j] - most);
  return sum;
}

void softmax_rows(kbeam::Range rows, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* __restrict from = x + row * columns;
    float* __restrict to = y + row * columns;
    const float sum = exponentials(from, to, columns, largest(from, columns));
    const float inverse = 1 / sum;
    for (std::int64_t j = 0; j < columns; ++j) to[j] *= inverse;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, softmax_rows, x, y, x.dim(1));
}
