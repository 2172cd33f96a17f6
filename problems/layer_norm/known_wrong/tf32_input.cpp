// expect: wrong_value
// caught by: element_error except few_columns, one_outlier
// The input is rounded to 11 bits, everything else is double.
#include <kbeam/candidate.h>

#include <bit>
#include <cmath>
#include <cstdint>
namespace {

// To the nearest number with 11 bits of significand; what is not finite stays.
float narrow(float value) {
  if (!std::isfinite(value)) return value;
  constexpr std::uint32_t kDropped = 13;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = (1u << (kDropped - 1)) - 1 + (bits >> kDropped & 1);
  return std::bit_cast<float>((bits + half) & ~((1u << kDropped) - 1));
}

void normalise_rows(kbeam::Range rows, const float* x_all, const float* gamma, const float* beta,
                    float* y_all, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const x = x_all + row * columns;
    float* const y = y_all + row * columns;
    double total = 0, squares = 0;
    for (std::int64_t j = 0; j < columns; ++j) total += narrow(x[j]);
    const double mean = total / static_cast<double>(columns);
    for (std::int64_t j = 0; j < columns; ++j)
      squares += (narrow(x[j]) - mean) * (narrow(x[j]) - mean);
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(columns) + 1e-5f);
    for (std::int64_t j = 0; j < columns; ++j)
      y[j] = static_cast<float>((narrow(x[j]) - mean) * inverse * gamma[j] + beta[j]);
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
