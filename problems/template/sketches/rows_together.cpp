// kRows rows at once, one vector of partial sums each: several streams from memory, no waiting
// between additions.
#include <kbeam/candidate.h>

KBEAM_KNOB(int, kWidth, 8, 8, 16);
KBEAM_KNOB(int, kRows, 4, 2, 4, 8);

namespace {

using V = kbeam::Vector<float, kWidth>;

template <int kCount>
void sum_group(const float* x, float* s, std::int64_t columns) {
  V sums[kCount] = {};
  std::int64_t j = 0;
  for (; j + kWidth <= columns; j += kWidth)
    for (int row = 0; row < kCount; ++row) sums[row] += kbeam::load<V>(x + row * columns + j);
  for (int row = 0; row < kCount; ++row) {
    float sum = 0;
    for (int lane = 0; lane < kWidth; ++lane) sum += sums[row][lane];
    for (std::int64_t rest = j; rest < columns; ++rest) sum += x[row * columns + rest];
    s[row] = sum;
  }
}

void sum_rows(kbeam::Range rows, const float* x, float* s, std::int64_t columns) {
  std::int64_t row = rows.begin;
  for (; row + kRows <= rows.end; row += kRows)
    sum_group<kRows>(x + row * columns, s + row, columns);
  for (; row < rows.end; ++row) sum_group<1>(x + row * columns, s + row, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto s = args.output<float>("s");
  plan.parallel_for(x.dim(0), 0, sum_rows, x, s, x.dim(1));
}
