// Blocked: panels of columns, then I - V T' V' on the rest. Columns are scaled by powers of two on
// the way in and back on the way out, so that neither squares nor products leave the range of
// float.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cmath>

KBEAM_KNOB(int, kPanel, 16, 4, 8, 16, 32);

namespace {

int exponent_of_largest(const float* x, std::int64_t count) {
  float largest = 0;
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest == 0 || !std::isfinite(largest) ? 0 : std::ilogb(largest);
}

float make_reflector(float* x, std::int64_t count) {
  bool any = false;
  for (std::int64_t i = 1; i < count; ++i) any |= !(x[i] == 0);
  if (!any && !std::isnan(x[0])) return 0;
  // Not the first column's scale alone: what is left of a column may be far below where it began.
  const int exponent = exponent_of_largest(x, count);
  float sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] = std::scalbn(x[i], -exponent);
    sum += x[i] * x[i];
  }
  const float alpha = x[0];
  const float beta = -std::copysign(std::sqrt(sum), alpha);
  const float inverse = 1 / (alpha - beta);
  for (std::int64_t i = 1; i < count; ++i) x[i] *= inverse;
  x[0] = std::scalbn(beta, exponent);
  return (beta - alpha) / beta;
}

void apply(const float* v, float tau, std::int64_t count, float* c) {
  float dot = c[0];
  for (std::int64_t r = 1; r < count; ++r) dot += v[r] * c[r];
  c[0] -= tau * dot;
  for (std::int64_t r = 1; r < count; ++r) c[r] -= v[r] * (tau * dot);
}

struct Panel {
  const float* v;  // below the diagonal of H; ones are implied
  std::int64_t m;
  std::int64_t first;
  std::int64_t width;
  float t[kPanel][kPanel];

  float entry(std::int64_t row, std::int64_t i) const {
    return row < first + i ? 0 : row == first + i ? 1 : v[(first + i) * m + row];
  }
};

// T of the forward product H_1 ... H_w = I - V T V'.
void make_t(Panel& p, const float* tau) {
  for (std::int64_t i = 0; i < p.width; ++i) {
    float dots[kPanel] = {};
    for (std::int64_t l = 0; l < i; ++l)
      for (std::int64_t row = p.first + i; row < p.m; ++row)
        dots[l] += p.entry(row, l) * p.entry(row, i);
    for (std::int64_t l = 0; l < i; ++l) {
      float sum = 0;
      for (std::int64_t s = l; s < i; ++s) sum += p.t[l][s] * dots[s];
      p.t[l][i] = tau[p.first + i] == 0 ? 0 : -tau[p.first + i] * sum;
    }
    p.t[i][i] = tau[p.first + i];
  }
}

void update(const Panel& p, float* c) {
  float w[kPanel] = {};
  for (std::int64_t i = 0; i < p.width; ++i)
    for (std::int64_t row = p.first + i; row < p.m; ++row) w[i] += p.entry(row, i) * c[row];
  for (std::int64_t i = p.width - 1; i >= 0;
       --i) {  // w := T' w, from the end so that it can stay in place
    float sum = 0;
    for (std::int64_t l = 0; l <= i; ++l) sum += p.t[l][i] * w[l];
    w[i] = sum;
  }
  for (std::int64_t i = 0; i < p.width; ++i)
    for (std::int64_t row = p.first + i; row < p.m; ++row) c[row] -= p.entry(row, i) * w[i];
}

void factor_matrix(float* x, float* tau, int* exponents, std::int64_t m, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    exponents[j] = exponent_of_largest(x + j * m, m);
    for (std::int64_t r = 0; r < m; ++r) x[j * m + r] = std::scalbn(x[j * m + r], -exponents[j]);
  }
  const std::int64_t k = std::min(m, n);
  for (std::int64_t first = 0; first < k; first += kPanel) {
    Panel p{x, m, first, std::min<std::int64_t>(kPanel, k - first), {}};
    for (std::int64_t i = first; i < first + p.width; ++i) {
      tau[i] = make_reflector(x + i * m + i, m - i);
      if (tau[i] == 0) continue;
      for (std::int64_t j = i + 1; j < first + p.width; ++j)
        apply(x + i * m + i, tau[i], m - i, x + j * m + i);
    }
    make_t(p, tau);
    for (std::int64_t j = first + p.width; j < n; ++j) update(p, x + j * m);
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
