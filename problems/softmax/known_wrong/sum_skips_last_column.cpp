// expect: wrong_value
// caught by: element_error, row_sum_error on normal
// The sum leaves the last column out: 1 / columns of the result, invisible to a loose norm on long
// rows.
#include <kbeam/candidate.h>

#include <cmath>
#include <limits>

namespace {

void softmax_row(const float* x, float* y, std::int64_t columns) {
  float most = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < columns; ++j) most = x[j] > most ? x[j] : most;
  double sum = columns == 1 ? 1 : 0;
  for (std::int64_t j = 0; j + 1 < columns; ++j) sum += std::exp(static_cast<double>(x[j]) - most);
  for (std::int64_t j = 0; j < columns; ++j)
    y[j] = static_cast<float>(std::exp(static_cast<double>(x[j]) - most) / sum);
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
