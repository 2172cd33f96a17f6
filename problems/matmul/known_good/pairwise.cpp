// Sums by halves, down to eight terms.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

float sum_of_products(const float* a, const float* b, std::int64_t stride, std::int64_t count) {
  if (count > 8) {
    const std::int64_t half = count / 2;
    return sum_of_products(a, b, stride, half) +
           sum_of_products(a + half, b + half * stride, stride, count - half);
  }
  float sum = 0;
  for (std::int64_t l = 0; l < count; ++l) sum += a[l] * b[l * stride];
  return sum;
}

void multiply_rows(kbeam::Range rows, const float* a_all, const float* b_all, float* c_all,
                   Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const a = a_all + row * s.k;
    const float* const b = b_all + row / s.m * s.k * s.n;
    float* const c = c_all + row * s.n;
    for (std::int64_t j = 0; j < s.n; ++j) c[j] = sum_of_products(a, b + j, s.n, s.k);
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
