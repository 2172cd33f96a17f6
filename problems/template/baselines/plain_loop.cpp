// Baseline: a plain loop over 16 partial sums per row. Without them the compiler must add in order,
// one by one.
#include <kbeam/candidate.h>

namespace {

constexpr int kLanes = 16;

void sum_rows(kbeam::Range rows, const float* x, float* s, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* values = x + row * columns;
    float partial[kLanes] = {};
    std::int64_t j = 0;
    for (; j + kLanes <= columns; j += kLanes)
      for (int lane = 0; lane < kLanes; ++lane) partial[lane] += values[j + lane];
    float sum = 0;
    for (; j < columns; ++j) sum += values[j];
    for (int lane = 0; lane < kLanes; ++lane) sum += partial[lane];
    s[row] = sum;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto s = args.output<float>("s");
  plan.parallel_for(x.dim(0), 0, sum_rows, x, s, x.dim(1));
}
