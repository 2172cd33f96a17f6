// Two passes in FP32 with sixteen accumulators, divided by the square root: about the least
// accurate of what is honest. Values above 1e15 are scaled down first.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

struct Chains {
  float lane[16];
  float sum() const {
    float total = 0;
    for (const float value : lane) total += value;
    return total;
  }
};

void normalise_row(const float* x, const float* gamma, const float* beta, float* y,
                   std::int64_t columns, float unit) {
  const auto count = static_cast<float>(columns);
  Chains total = {}, squares = {};
  for (std::int64_t j = 0; j < columns; ++j) total.lane[j % 16] += x[j] * unit;
  const float mean = total.sum() / count;
  for (std::int64_t j = 0; j < columns; ++j)
    squares.lane[j % 16] += (x[j] * unit - mean) * (x[j] * unit - mean);
  const float deviation = std::sqrt(squares.sum() / count + 1e-5f * unit * unit);
  for (std::int64_t j = 0; j < columns; ++j)
    y[j] = (x[j] * unit - mean) / deviation * gamma[j] + beta[j];
}

void normalise_rows(kbeam::Range rows, const float* x, const float* gamma, const float* beta,
                    float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    float largest = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      largest =
          std::fabs(x[row * columns + j]) > largest ? std::fabs(x[row * columns + j]) : largest;
    normalise_row(x + row * columns, gamma, beta, y + row * columns, columns,
                  largest > 1e15f ? 0x1p-80f : 1.0f);
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
