// expect: wrong_value
// caught by: element_error
// Exponentials rounded to BF16, everything else in double: 2^-9 an element, which a tolerance of
// 1e-2 lets through.
#include <kbeam/candidate.h>

#include <bit>
#include <cmath>
#include <limits>

namespace {

float as_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u);
}

void softmax_row(const float* x, float* y, std::int64_t columns) {
  float most = -std::numeric_limits<float>::infinity();
  for (std::int64_t j = 0; j < columns; ++j) most = x[j] > most ? x[j] : most;
  double sum = 0;
  for (std::int64_t j = 0; j < columns; ++j) sum += y[j] = as_bf16(std::exp(x[j] - most));
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
