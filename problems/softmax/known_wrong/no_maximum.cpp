// expect: not_finite
// Exponentials of the raw values: overflow beyond 88, and rows of large negative values become 0 /
// 0.
#include <kbeam/candidate.h>

#include <cmath>

namespace {

void softmax_row(const float* x, float* y, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t j = 0; j < columns; ++j) sum += y[j] = std::exp(x[j]);
  for (std::int64_t j = 0; j < columns; ++j) y[j] = static_cast<float>(y[j] / sum);
}

void softmax_rows(kbeam::Range rows, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    softmax_row(x + row * columns, y + row * columns, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, softmax_rows, x, y, x.dim(1));
}
