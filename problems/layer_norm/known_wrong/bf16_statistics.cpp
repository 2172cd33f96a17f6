// expect: wrong_value
// caught by: element_error on standard, mixed, mean_10000
// Mean and scale are stored with 8 bits between two kernels.
#include <kbeam/candidate.h>

#include <bit>
#include <cmath>
#include <cstdint>
namespace {

// To the nearest number with 8 bits of significand; what is not finite stays.
float narrow(float value) {
  if (!std::isfinite(value)) return value;
  constexpr std::uint32_t kDropped = 16;
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
    for (std::int64_t j = 0; j < columns; ++j) total += x[j];
    const double mean = total / static_cast<double>(columns);
    for (std::int64_t j = 0; j < columns; ++j) squares += (x[j] - mean) * (x[j] - mean);
    const float stored_mean = narrow(static_cast<float>(mean));
    const float inverse =
        narrow(static_cast<float>(1 / std::sqrt(squares / static_cast<double>(columns) + 1e-5f)));
    for (std::int64_t j = 0; j < columns; ++j)
      y[j] = (x[j] - stored_mean) * inverse * gamma[j] + beta[j];
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
