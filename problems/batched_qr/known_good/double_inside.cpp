// Unblocked Householder in double, rounded once at the end: the most accurate answer that FP32 can
// hold.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cmath>

namespace {

double make_reflector(double* x, std::int64_t count) {
  double largest = 0;
  for (std::int64_t i = 1; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  if (largest == 0 && std::none_of(x + 1, x + count, [](double y) { return std::isnan(y); }))
    return 0;
  // Copies of copies leave the rounding of rounding, whose squares underflow even in double.
  const int exponent =
      largest > 0 && largest < 1e-100 && std::fabs(x[0]) < 1e-100 ? std::ilogb(largest) : 0;
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] = std::scalbn(x[i], -exponent);
    sum += x[i] * x[i];
  }
  const double alpha = x[0];
  const double beta = -std::copysign(std::sqrt(sum), alpha);
  for (std::int64_t i = 1; i < count; ++i) x[i] /= alpha - beta;
  x[0] = std::scalbn(beta, exponent);
  return (beta - alpha) / beta;
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, double* x, std::int64_t m,
            std::int64_t n) {
  const std::int64_t k = std::min(m, n);
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    std::copy_n(a + b * m * n, m * n, x);
    for (std::int64_t i = 0; i < k; ++i) {
      double* v = x + i * m + i;
      const double t = make_reflector(v, m - i);
      tau[b * k + i] = static_cast<float>(t);
      if (t == 0) continue;
      for (std::int64_t j = i + 1; j < n; ++j) {
        double* c = x + j * m + i;
        double dot = c[0];
        for (std::int64_t r = 1; r < m - i; ++r) dot += v[r] * c[r];
        c[0] -= t * dot;
        for (std::int64_t r = 1; r < m - i; ++r) c[r] -= v[r] * (t * dot);
      }
    }
    std::copy_n(x, m * n, h + b * m * n);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  auto x = plan.worker_scratch<double>(a.dim(1) * a.dim(2));
  plan.parallel_for(a.dim(0), 1, factor, a, h, tau, x, a.dim(1), a.dim(2));
}
