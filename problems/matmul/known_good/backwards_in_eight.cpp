// Another order of summation: terms from the last to the first, in eight chains.
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
    for (std::int64_t j = 0; j < s.n; ++j) {
      float chains[8] = {};
      for (std::int64_t l = s.k - 1; l >= 0; --l) chains[l % 8] += a[l] * b[l * s.n + j];
      c[j] = ((chains[0] + chains[4]) + (chains[1] + chains[5])) +
             ((chains[2] + chains[6]) + (chains[3] + chains[7]));
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
