// Sums by halves, down to eight terms.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

constexpr std::int64_t kStrip = 16;  // columns at a time

struct Sums {
  float of[kStrip] = {};
};

Sums sum_of_products(const float* a, const float* b, std::int64_t stride, std::int64_t count,
                     std::int64_t columns) {
  Sums sums;
  if (count > 8) {
    const std::int64_t half = count / 2;
    sums = sum_of_products(a, b, stride, half, columns);
    const Sums more = sum_of_products(a + half, b + half * stride, stride, count - half, columns);
    for (std::int64_t j = 0; j < columns; ++j) sums.of[j] += more.of[j];
    return sums;
  }
  for (std::int64_t l = 0; l < count; ++l)
    for (std::int64_t j = 0; j < columns; ++j) sums.of[j] += a[l] * b[l * stride + j];
  return sums;
}

void multiply_rows(kbeam::Range rows, const float* a_all, const float* b_all, float* c_all,
                   Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const a = a_all + row * s.k;
    const float* const b = b_all + row / s.m * s.k * s.n;
    float* const c = c_all + row * s.n;
    for (std::int64_t first = 0; first < s.n; first += kStrip) {
      const std::int64_t columns = s.n - first < kStrip ? s.n - first : kStrip;
      const Sums sums = sum_of_products(a, b + first, s.n, s.k, columns);
      for (std::int64_t j = 0; j < columns; ++j) c[first + j] = sums.of[j];
    }
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Shape shape{c.dim(1), c.dim(2), a.dim(2)};
  plan.parallel_for(c.dim(0) * shape.m, 0, multiply_rows, a, b, c, shape);
}
