// Updates with operands split into two TF32 halves and three products kept, as tensor cores would
// do it: FP32 grade at every size. Columns are scaled by powers of two first.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

float to_tf32(float x) {
  if (!std::isfinite(x)) return x;
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0xfffu + (bits >> 13 & 1)) & 0xffffe000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

float split_product(float x, float y) {
  const float x_high = to_tf32(x), x_low = to_tf32(x - x_high);
  const float y_high = to_tf32(y), y_low = to_tf32(y - y_high);
  return x_low * y_high + x_high * y_low + x_high * y_high;
}

int exponent_of_largest(const float* x, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest == 0 || !std::isfinite(largest) ? 0 : std::ilogb(largest);
}

float make_reflector(float* x, std::int64_t count) {
  bool any = false;
  for (std::int64_t i = 1; i < count; ++i) any |= !(x[i] == 0);
  if (!any && !std::isnan(x[0])) return 0;
  const int exponent = exponent_of_largest(x, count);
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
  float dot = c[0];
  for (std::int64_t r = 1; r < count; ++r) dot += split_product(v[r], c[r]);
  const float weight = tau * dot;
  c[0] -= weight;
  for (std::int64_t r = 1; r < count; ++r) c[r] -= split_product(v[r], weight);
}

void factor_matrix(float* x, float* tau, int* exponents, std::int64_t m, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    exponents[j] = exponent_of_largest(x + j * m, m);
    for (std::int64_t r = 0; r < m; ++r) x[j * m + r] = std::scalbn(x[j * m + r], -exponents[j]);
  }
  for (std::int64_t i = 0; i < std::min(m, n); ++i) {
    tau[i] = make_reflector(x + i * m + i, m - i);
    if (tau[i] == 0) continue;
    for (std::int64_t j = i + 1; j < n; ++j) apply(x + i * m + i, tau[i], m - i, x + j * m + i);
  }
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t r = 0; r < std::min(j + 1, m); ++r)
      x[j * m + r] = std::scalbn(x[j * m + r], exponents[j]);
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, int* exponents,
            std::int64_t m, std::int64_t n) {
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    std::copy_n(a + b * m * n, m * n, h + b * m * n);
    factor_matrix(h + b * m * n, tau + b * std::min(m, n), exponents, m, n);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  auto exponents = plan.worker_scratch<int>(a.dim(2));
  plan.parallel_for(a.dim(0), 1, factor, a, h, tau, exponents, a.dim(1), a.dim(2));
}
