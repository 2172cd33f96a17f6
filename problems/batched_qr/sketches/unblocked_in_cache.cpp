// Unblocked Householder QR on a padded copy of one matrix in cache: a reflector is made, applied to
// every later column at once, and the next column's norm falls out of the same sweep. No blocking,
// so large matrices are limited by L2.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

KBEAM_KNOB(int, kWidth, 16, 4, 8, 16);        // floats a vector
KBEAM_KNOB(int, kColumns, 1, 1, 2, 4, 6, 8);  // columns that share each load of the reflector
KBEAM_KNOB(int, kFuseNorm, 0, 0, 1);  // 1: the next column's norm is taken while it is updated
KBEAM_KNOB(int, kPad, 0, 0, 1, 3);    // empty vectors between columns, against 4 KiB aliasing
KBEAM_KNOB(int, kPrefetch, 0, 0, 1);  // 1: fetch the next matrix while this one is factored

namespace {

using Row = kbeam::Vector<float, kWidth>;
using kbeam::load;
using kbeam::store;

constexpr int kTiny = 8;  // up to this size the plain path is more accurate, and fast enough
constexpr float kSafeLow = 0x1p-80f,
                kSafeHigh = 0x1p100f;  // sums of squares that lost nothing to range

struct Shape {
  int m, n, k;
  int rows;    // m rounded up to whole vectors; the rows beyond m are zero
  int stride;  // floats from one padded column to the next
};

template <int kCount>
float sum_lanes(kbeam::Vector<float, kCount> x) {
  if constexpr (kCount == 1) {
    return x[0];
  } else {
    kbeam::Vector<float, kCount / 2> low, high;
    std::memcpy(&low, &x, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&x) + sizeof low, sizeof high);
    return sum_lanes<kCount / 2>(low + high);
  }
}

// --- the plain path: sums in double precision; right for every input, fast for none ---

double dot_below(const float* v, const float* x, int above, int m) {
  double sum = 0;
  for (int i = above + 1; i < m; ++i) sum += static_cast<double>(v[i]) * x[i];
  return sum;
}

// Turns column j into its reflector in double precision. Returns tau.
float make_reflector_plain(float* v, int j, int m) {
  const double tail = dot_below(v, v, j, m), alpha = v[j];
  if (tail == 0) return 0;  // H = I, and the diagonal keeps its sign
  const double beta = -std::copysign(std::sqrt(tail + alpha * alpha), alpha);
  for (int i = j + 1; i < m; ++i) v[i] = static_cast<float>(v[i] / (alpha - beta));
  v[j] = static_cast<float>(beta);
  // From the rounded v, so that I - tau v v' is orthogonal whatever the rounding did.
  return static_cast<float>(2 / (1 + dot_below(v, v, j, m)));
}

void factor_plain(const float* a, float* h, float* tau, const Shape& shape) {
  const int m = shape.m;
  std::copy_n(a, std::int64_t{m} * shape.n, h);
  for (int j = 0; j < shape.k; ++j) {
    float* v = h + std::int64_t{j} * m;
    tau[j] = make_reflector_plain(v, j, m);
    for (int c = j + 1; c < shape.n; ++c) {
      float* x = h + std::int64_t{c} * m;
      const double w = tau[j] * (x[j] + dot_below(v, x, j, m));
      x[j] = static_cast<float>(x[j] - w);
      for (int i = j + 1; i < m; ++i) x[i] = static_cast<float>(x[i] - w * v[i]);
    }
  }
}

// --- the fast path ---

// First row of the first whole vector below row j.
int below(int j) {
  return (j / kWidth + 1) * kWidth;
}

float sum_of_squares(const float* x, int j, int rows) {
  float head = 0;
  for (int i = j + 1; i < below(j); ++i) head += x[i] * x[i];
  Row sum[4] = {};
  int i = below(j);
  for (; i + 4 * kWidth <= rows; i += 4 * kWidth)
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) {
      const Row r = load<Row>(x + i + u * kWidth);
      sum[u] += r * r;
    }
  for (; i < rows; i += kWidth) sum[0] += load<Row>(x + i) * load<Row>(x + i);
  return head + sum_lanes<kWidth>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// Makes reflector j of column x, whose tail has the given sum of squares; v receives it with its 1
// and with zeros above.
float make_reflector(float* x, float* v, float tail, int j, const Shape& shape) {
  const float alpha = x[j];
  float tau;
  if (tail > kSafeLow && tail + alpha * alpha < kSafeHigh) {
    const float beta = -std::copysign(std::sqrt(tail + alpha * alpha), alpha);
    const float scale = 1 / (alpha - beta);
    tau = (beta - alpha) / beta;
    x[j] = beta;
    for (int i = j + 1; i < std::min(below(j), shape.m); ++i) x[i] *= scale;
    for (int i = below(j); i < shape.rows; i += kWidth) store(x + i, load<Row>(x + i) * scale);
  } else {
    tau = make_reflector_plain(x, j, shape.m);
  }
  std::copy_n(x + j, shape.rows - j, v + j);
  std::fill_n(v + below(j) - kWidth, j - (below(j) - kWidth), 0.0f);
  v[j] = 1;
  return tau;
}

// Applies I - tau v v' to kCount neighbouring columns. Returns the sum of squares of the first
// one's new tail below the first whole vector, if wanted.
template <int kCount, bool kNorm>
float apply(const float* v, float tau, float* x, int j, const Shape& shape) {
  const int first = below(j) - kWidth;
  Row dot[kCount] = {};
  for (int i = first; i < shape.rows; i += kWidth) {
    const Row vi = load<Row>(v + i);
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) dot[c] += vi * load<Row>(x + c * shape.stride + i);
  }
  float w[kCount];
#pragma GCC unroll 8
  for (int c = 0; c < kCount; ++c) w[c] = tau * sum_lanes<kWidth>(dot[c]);
  Row square{};
  for (int i = first; i < shape.rows; i += kWidth) {
    const Row vi = load<Row>(v + i);
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) {
      const Row updated = load<Row>(x + c * shape.stride + i) - w[c] * vi;
      store(x + c * shape.stride + i, updated);
      if (kNorm && c == 0 && i >= below(j + 1)) square += updated * updated;
    }
  }
  return kNorm ? sum_lanes<kWidth>(square) : 0;
}

void factor_padded(float* x, float* v, float* tau, const Shape& shape) {
  float tail = 0;
  for (int j = 0; j < shape.k; ++j) {
    float* column = x + std::int64_t{j} * shape.stride;
    if (kFuseNorm == 0 || j == 0) tail = sum_of_squares(column, j, shape.rows);
    tau[j] = make_reflector(column, v, tail, j, shape);
    if (tau[j] == 0) {
      if (j + 1 < shape.n) tail = sum_of_squares(column + shape.stride, j + 1, shape.rows);
      continue;
    }
    int c = j + 1;
    if (kFuseNorm == 1 && c < shape.n) {
      float* next = column + shape.stride;
      tail = apply<1, true>(v, tau[j], next, j, shape);
      for (int i = c + 1; i < below(c); ++i) tail += next[i] * next[i];
      ++c;
    }
    for (; c + kColumns <= shape.n; c += kColumns)
      apply<kColumns, false>(v, tau[j], x + std::int64_t{c} * shape.stride, j, shape);
    for (; c < shape.n; ++c)
      apply<1, false>(v, tau[j], x + std::int64_t{c} * shape.stride, j, shape);
  }
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, float* padded, float* v,
            Shape shape) {
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    const float* from = a + b * elements;
    float* to = h + b * elements;
    if (std::max(shape.m, shape.n) <= kTiny) {
      factor_plain(from, to, tau + b * shape.k, shape);
      continue;
    }
    for (int c = 0; c < shape.n; ++c) {
      float* column = padded + std::int64_t{c} * shape.stride;
      std::copy_n(from + std::int64_t{c} * shape.m, shape.m, column);
      std::fill(column + shape.m, column + shape.rows, 0.0f);
    }
    if (kPrefetch == 1 && b + 1 < range.end)
      for (std::int64_t e = 0; e < elements; e += 16) __builtin_prefetch(from + elements + e, 0, 2);
    factor_padded(padded, v, tau + b * shape.k, shape);
    for (int c = 0; c < shape.n; ++c)
      std::copy_n(padded + std::int64_t{c} * shape.stride, shape.m, to + std::int64_t{c} * shape.m);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  Shape shape{};
  shape.m = static_cast<int>(a.dim(1));
  shape.n = static_cast<int>(a.dim(2));
  shape.k = std::min(shape.m, shape.n);
  shape.rows = (shape.m + kWidth - 1) / kWidth * kWidth;
  shape.stride = shape.rows + kPad * kWidth;
  const auto padded = plan.worker_scratch<float>(std::int64_t{shape.stride} * shape.n);
  const auto v = plan.worker_scratch<float>(shape.rows);
  plan.parallel_for(a.dim(0), 0, factor, a, h, tau, padded, v, shape);
}
