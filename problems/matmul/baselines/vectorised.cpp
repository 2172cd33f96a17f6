// A second baseline without a library: four rows of C are accumulated over a strip of columns in
// plain loops that the compiler vectorises, blocked over k so that the strip of B stays in L1.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kStrip, 64, 16, 64);  // columns of C at a time
KBEAM_KNOB(int, kDepth, 256, 128, 256);

namespace {

struct Shape {
  std::int64_t m, n, k;
};

// C[rows][0 .. columns) += A B over `depth` terms; with `from` 0 nothing is in C yet.
template <int kRows>
void multiply_strip(const float* a, const float* b, float* c, const Shape& s, std::int64_t columns,
                    std::int64_t depth, std::int64_t from) {
  float sums[kRows][kStrip] = {};
  if (columns == kStrip) {
    for (std::int64_t l = 0; l < depth; ++l)
      for (int r = 0; r < kRows; ++r) {
        const float value = a[r * s.k + l];
#pragma omp simd
        for (int j = 0; j < kStrip; ++j) sums[r][j] += value * b[l * s.n + j];
      }
  } else {
    for (std::int64_t l = 0; l < depth; ++l)
      for (int r = 0; r < kRows; ++r)
        for (std::int64_t j = 0; j < columns; ++j) sums[r][j] += a[r * s.k + l] * b[l * s.n + j];
  }
  for (int r = 0; r < kRows; ++r)
    for (std::int64_t j = 0; j < columns; ++j)
      c[r * s.n + j] = from == 0 ? sums[r][j] : c[r * s.n + j] + sums[r][j];
}

// Quads of rows, the last one cut short.
void multiply(kbeam::Range range, const float* a, const float* b, float* c, Shape s) {
  const std::int64_t quads = (s.m + 3) / 4;
  for (std::int64_t item = range.begin; item < range.end; ++item) {
    const std::int64_t product = item / quads;
    const std::int64_t row = item % quads * 4;
    const float* const rows = a + (product * s.m + row) * s.k;
    const float* const with = b + product * s.k * s.n;
    float* const to = c + (product * s.m + row) * s.n;
    for (std::int64_t l = 0; l < s.k; l += kDepth)
      for (std::int64_t j = 0; j < s.n; j += kStrip) {
        const std::int64_t depth = std::min<std::int64_t>(kDepth, s.k - l);
        const std::int64_t columns = std::min<std::int64_t>(kStrip, s.n - j);
        const float* const b_block = with + l * s.n + j;
        if (s.m - row >= 4) {
          multiply_strip<4>(rows + l, b_block, to + j, s, columns, depth, l);
        } else {
          for (std::int64_t r = 0; r < s.m - row; ++r)
            multiply_strip<1>(rows + r * s.k + l, b_block, to + r * s.n + j, s, columns, depth, l);
        }
      }
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Shape shape{c.dim(1), c.dim(2), a.dim(2)};
  plan.parallel_for(c.dim(0) * ((shape.m + 3) / 4), 0, multiply, a, b, c, shape);
}
