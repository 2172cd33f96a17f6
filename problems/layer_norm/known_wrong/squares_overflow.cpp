// expect: wrong_value
// Two honest passes in FP32, but squares above 1.8e19 overflow and the row becomes beta.
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
    float total = 0, square = 0;
    for (std::int64_t j = 0; j < columns; ++j) sums[j % 16] += x[j];
    for (const float sum : sums) total += sum;
    const float mean = total / count;
    for (std::int64_t j = 0; j < columns; ++j) squares[j % 16] += (x[j] - mean) * (x[j] - mean);
    for (const float sum : squares) square += sum;
    const float inverse = 1 / std::sqrt(square / count + 1e-5f);
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
