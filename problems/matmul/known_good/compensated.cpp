// FP32 sums that carry what each addition and each product lost: almost as good as double.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

void multiply_rows(kbeam::Range rows, const float* a_all, const float* b_all, float* c_all,
                   Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const a = a_all + row * s.k;
    const float* const b = b_all + row / s.m * s.k * s.n;
    float* const c = c_all + row * s.n;
    for (std::int64_t j = 0; j < s.n; ++j) {
      float sum = 0, lost = 0;
      for (std::int64_t l = 0; l < s.k; ++l) {
        const float product = a[l] * b[l * s.n + j];
        const float next = sum + product;
        const float back = next - sum;
        lost += (sum - (next - back)) + (product - back);
        lost += std::fma(a[l], b[l * s.n + j], -product);
        sum = next;
      }
      // What was lost is no number where the sum is not: the sum alone is right there.
      c[j] = std::isfinite(sum) ? sum + lost : sum;
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
