// FP32 sums that carry what each addition and each product lost: almost as good as double.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

constexpr std::int64_t kStrip = 16;  // columns at a time

void multiply_strip(const float* a, const float* b, float* c, const Shape& s,
                    std::int64_t columns) {
  float sum[kStrip] = {}, lost[kStrip] = {};
  for (std::int64_t l = 0; l < s.k; ++l)
    for (std::int64_t j = 0; j < columns; ++j) {
      const float factor = b[l * s.n + j];
      const float product = a[l] * factor;
      const float next = sum[j] + product;
      const float back = next - sum[j];
      lost[j] += (sum[j] - (next - back)) + (product - back);
      lost[j] += std::fma(a[l], factor, -product);
      sum[j] = next;
    }
  // What was lost is no number where the sum is not: the sum alone is right there.
  for (std::int64_t j = 0; j < columns; ++j)
    c[j] = std::isfinite(sum[j]) ? sum[j] + lost[j] : sum[j];
}

void multiply_rows(kbeam::Range rows, const float* a_all, const float* b_all, float* c_all,
                   Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const a = a_all + row * s.k;
    const float* const b = b_all + row / s.m * s.k * s.n;
    float* const c = c_all + row * s.n;
    for (std::int64_t first = 0; first < s.n; first += kStrip)
      multiply_strip(a, b + first, c + first, s, s.n - first < kStrip ? s.n - first : kStrip);
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
