// Plain unblocked Householder, column by column, with LAPACK's scalings done by powers of two.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cmath>

namespace {

// Brings the largest magnitude of x into [1, 2) for the reflector's arithmetic; exact both ways.
int exponent_of_largest(const float* x, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest == 0 ? 0 : std::ilogb(largest);
}

float make_reflector(float* x, std::int64_t count) {
  bool any = false, finite = true;
  for (std::int64_t i = 0; i < count; ++i) {
    any |= i > 0 && x[i] != 0;
    finite &= std::isfinite(x[i]);
  }
  if (!finite) {
    std::fill_n(x, count, std::nanf(""));
    return std::nanf("");
  }
  if (!any) return 0;
  const int exponent = exponent_of_largest(x, count);
  for (std::int64_t i = 0; i < count; ++i) x[i] = std::scalbn(x[i], -exponent);
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += x[i] * x[i];
  const float alpha = x[0];
  const float beta = -std::copysign(std::sqrt(sum), alpha);
  for (std::int64_t i = 1; i < count; ++i) x[i] /= alpha - beta;
  x[0] = std::scalbn(beta, exponent);
  return (beta - alpha) / beta;
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, std::int64_t m,
            std::int64_t n) {
  const std::int64_t k = std::min(m, n);
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    float* x = h + b * m * n;
    std::copy_n(a + b * m * n, m * n, x);
    for (std::int64_t i = 0; i < k; ++i) {
      float* v = x + i * m + i;
      const float t = tau[b * k + i] = make_reflector(v, m - i);
      if (t == 0) continue;
      for (std::int64_t j = i + 1; j < n; ++j) {
        float* c = x + j * m + i;
        float dot = c[0];
        for (std::int64_t r = 1; r < m - i; ++r) dot += v[r] * c[r];
        c[0] -= t * dot;
        for (std::int64_t r = 1; r < m - i; ++r) c[r] -= v[r] * (t * dot);
      }
    }
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  plan.parallel_for(a.dim(0), 1, factor, a, h, tau, a.dim(1), a.dim(2));
}
