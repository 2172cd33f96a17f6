// expect: wrong_value
// The columns after the last whole vector count neither for the maximum nor for the sum.
#include <kbeam/candidate.h>

#include <cmath>
#include <limits>

namespace {

void softmax_row(const float* x, float* y, std::int64_t columns) {
  const std::int64_t whole = columns < 16 ? columns : columns / 16 * 16;
  float most = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < whole; ++j) most = x[j] > most ? x[j] : most;
  double sum = 0;
  for (std::int64_t j = 0; j < whole; ++j) sum += std::exp(static_cast<double>(x[j]) - most);
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
