// expect: wrong_value
// B is stepped through with k instead of n columns: right on square matrices, which most tests are.
#include <kbeam/candidate.h>

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
    for (std::int64_t first = 0; first < s.n; first += 16) {
      const std::int64_t last = first + 16 < s.n ? first + 16 : s.n;
      double sums[16] = {};
      for (std::int64_t l = 0; l < s.k; ++l)
        for (std::int64_t j = first; j < last; ++j)
          sums[j - first] += static_cast<double>(a[l]) * b[l * s.k % (s.k * s.n - s.n + 1) + j];
      for (std::int64_t j = first; j < last; ++j) c[j] = static_cast<float>(sums[j - first]);
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
