// Left-looking: a column meets all earlier reflectors when its turn comes. Every column is first
// scaled by its own power of two, which no reflector and no tau can see; tau is recomputed as 2 /
// v'v.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cmath>

namespace {

// A power of two that brings the column's largest magnitude near 1, or 0 where the column is zero
// or not finite.
int exponent_of_largest(const float* x, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest == 0 || !std::isfinite(largest) ? 0 : std::ilogb(largest);
}

float make_reflector(float* x, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 1; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  if (largest == 0 && std::none_of(x, x + count, [](float y) { return std::isnan(y); })) return 0;
  // The column as a whole is near 1, what is left of it may be much smaller.
  const int exponent = exponent_of_largest(x, count);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] = std::scalbn(x[i], -exponent);
    sum += static_cast<double>(x[i]) * x[i];
  }
  const float alpha = x[0];
  const auto beta = static_cast<float>(-std::copysign(std::sqrt(sum), alpha));
  double squares = 1;
  for (std::int64_t i = 1; i < count; ++i) {
    x[i] /= alpha - beta;
    squares += static_cast<double>(x[i]) * x[i];
  }
  x[0] = std::scalbn(beta, exponent);
  return static_cast<float>(2 / squares);
}

void apply(const float* v, float tau, std::int64_t count, float* c) {
  float dot = c[0];
  for (std::int64_t r = 1; r < count; ++r) dot += v[r] * c[r];
  c[0] -= tau * dot;
  for (std::int64_t r = 1; r < count; ++r) c[r] -= v[r] * (tau * dot);
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, std::int64_t m,
            std::int64_t n) {
  const std::int64_t k = std::min(m, n);
  for (std::int64_t b = range.begin; b < range.end; ++b)
    for (std::int64_t j = 0; j < n; ++j) {
      float* x = h + b * m * n;
      float* c = x + j * m;
      std::copy_n(a + b * m * n + j * m, m, c);
      const int exponent = exponent_of_largest(c, m);
      for (std::int64_t r = 0; r < m; ++r) c[r] = std::scalbn(c[r], -exponent);
      for (std::int64_t i = 0; i < std::min(j, k); ++i)
        if (tau[b * k + i] != 0) apply(x + i * m + i, tau[b * k + i], m - i, c + i);
      if (j < k) tau[b * k + j] = make_reflector(c + j, m - j);
      for (std::int64_t r = 0; r < std::min(j + 1, m); ++r) c[r] = std::scalbn(c[r], exponent);
    }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  plan.parallel_for(a.dim(0), 1, factor, a, h, tau, a.dim(1), a.dim(2));
}
