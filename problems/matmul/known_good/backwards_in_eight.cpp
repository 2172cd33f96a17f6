// Another order of summation: terms from the last to the first, in eight chains.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

constexpr std::int64_t kStrip = 16;  // columns at a time

void multiply_strip(const float* a, const float* b, float* c, const Shape& s,
                    std::int64_t columns) {
  float chains[8][kStrip] = {};
  for (std::int64_t l = s.k - 1; l >= 0; --l)
    for (std::int64_t j = 0; j < columns; ++j) chains[l % 8][j] += a[l] * b[l * s.n + j];
  for (std::int64_t j = 0; j < columns; ++j)
    c[j] = ((chains[0][j] + chains[4][j]) + (chains[1][j] + chains[5][j])) +
           ((chains[2][j] + chains[6][j]) + (chains[3][j] + chains[7][j]));
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
