// expect: wrong_value
// caught by: element_error
// The well-known exponential by writing into the exponent field: 3 % off, fast, and not FP32.
#include <kbeam/candidate.h>

#include <bit>
#include <limits>

namespace {

float rough_exp(float d) {
  if (!(d > -87)) return d != d ? d : 0;
  return std::bit_cast<float>(static_cast<std::int32_t>(12102203.0f * d) + 1064866805);
}

void softmax_row(const float* x, float* y, std::int64_t columns) {
  float most = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < columns; ++j) most = x[j] > most ? x[j] : most;
  double sum = 0;
  for (std::int64_t j = 0; j < columns; ++j) sum += y[j] = rough_exp(x[j] - most);
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
