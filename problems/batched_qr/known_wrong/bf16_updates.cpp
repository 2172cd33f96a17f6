// expect: wrong_value
// caught by: column_residual, projected_residual except subnormal
// Operands of the updates are rounded to BF16.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

float narrow(float x) {
  if (!std::isfinite(x)) return x;
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x7fffu + (bits >> 16 & 1)) & 0xffff0000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

float make_reflector(float* x, std::int64_t count) {
  float largest = 0;
  bool any = false;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::fabs(x[i]));
    any |= i > 0 && !(x[i] == 0);
  }
  if (!any && !std::isnan(x[0])) return 0;
  const int exponent = largest == 0 || !std::isfinite(largest) ? 0 : std::ilogb(largest);
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] = std::scalbn(x[i], -exponent);
    sum += x[i] * x[i];
  }
  const float alpha = x[0];
  const float beta = -std::copysign(std::sqrt(sum), alpha);
  for (std::int64_t i = 1; i < count; ++i) x[i] /= alpha - beta;
  x[0] = std::scalbn(beta, exponent);
  return (beta - alpha) / beta;
}

void apply(const float* v, float tau, std::int64_t count, float* c) {
  float dot = narrow(c[0]);
  for (std::int64_t r = 1; r < count; ++r) dot += narrow(v[r]) * narrow(c[r]);
  const float weight = narrow(tau * dot);
  c[0] -= weight;
  for (std::int64_t r = 1; r < count; ++r) c[r] -= narrow(v[r]) * weight;
}

void factor_matrix(float* x, float* tau, std::int64_t m, std::int64_t n) {
  for (std::int64_t i = 0; i < std::min(m, n); ++i) {
    tau[i] = make_reflector(x + i * m + i, m - i);
    if (tau[i] == 0) continue;
    for (std::int64_t j = i + 1; j < n; ++j) apply(x + i * m + i, tau[i], m - i, x + j * m + i);
  }
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, std::int64_t m,
            std::int64_t n) {
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    std::copy_n(a + b * m * n, m * n, h + b * m * n);
    factor_matrix(h + b * m * n, tau + b * std::min(m, n), m, n);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  plan.parallel_for(a.dim(0), 1, factor, a, h, tau, a.dim(1), a.dim(2));
}
