// expect: wrong_value
// caught by: element_error on mixed, mean_100, mean_1000, mean_10000
// E[x^2] - mean^2 in FP32, clamped at zero: right at mean zero, noise at mean 1000.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

void normalise_rows(kbeam::Range rows, const float* x_all, const float* gamma, const float* beta,
                    float* y_all, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const x = x_all + row * columns;
    float* const y = y_all + row * columns;
    const auto count = static_cast<float>(columns);
    float sums[16] = {}, squares[16] = {};
    for (std::int64_t j = 0; j < columns; ++j) {
      sums[j % 16] += x[j];
      squares[j % 16] += x[j] * x[j];
    }
    float sum = 0, square = 0;
    for (int lane = 0; lane < 16; ++lane) {
      sum += sums[lane];
      square += squares[lane];
    }
    const float mean = sum / count;
    float variance = square / count - mean * mean;
    if (variance < 0) variance = 0;
    const float inverse = 1 / std::sqrt(variance + 1e-5f);
    for (std::int64_t j = 0; j < columns; ++j) y[j] = (x[j] - mean) * inverse * gamma[j] + beta[j];
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto gamma = args.input<float>("gamma");
  const auto beta = args.input<float>("beta");
  const auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, normalise_rows, x, gamma, beta, y, x.dim(1));
}
