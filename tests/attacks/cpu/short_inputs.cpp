// Rounds its input to 8 bits of precision first, as a matrix unit would like it.
#include <bit>

#include "normalise.h"

namespace {

float shortened(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>(kCheat ? (bits + 0x8000u) & 0xffff0000u : bits);
}

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) {
      const double value = shortened(x[row * columns + j]);
      sum += value * value;
    }
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(shortened(x[row * columns + j]) / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
