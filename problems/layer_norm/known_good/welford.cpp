// Welford's running mean and sum of squares in FP32, in sixteen chains that are merged at the end.
// A row with values above 1e15 is scaled by a power of two, so that no square leaves the range.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace {

struct Running {
  float count;
  float mean;
  float squares;  // of the distances from the mean

  void take(float value) {
    const float away = value - mean;
    count += 1;
    mean += away / count;
    squares += away * (value - mean);
  }
  void merge(const Running& other) {
    if (other.count == 0) return;
    const float away = other.mean - mean;
    const float total = count + other.count;
    squares += other.squares + away * away * (count * other.count / total);
    mean += away * (other.count / total);
    count = total;
  }
};

// A power of two near the largest magnitude; 1 for rows of zeros and rows with a NaN or Inf.
float scale_of(const float* x, std::int64_t columns) {
  float largest = 0;
  for (std::int64_t j = 0; j < columns; ++j)
    largest = std::fabs(x[j]) > largest ? std::fabs(x[j]) : largest;
  if (!(largest > 1e15f) || largest > std::numeric_limits<float>::max()) return 1;
  return std::ldexp(1.0f, std::ilogb(largest));
}

void normalise_rows(kbeam::Range rows, const float* x_all, const float* gamma, const float* beta,
                    float* y_all, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const x = x_all + row * columns;
    float* const y = y_all + row * columns;
    const float unit = 1 / scale_of(x, columns);
    Running chains[16] = {};
    for (std::int64_t j = 0; j < columns; ++j) chains[j % 16].take(x[j] * unit);
    for (int lane = 1; lane < 16; ++lane) chains[0].merge(chains[lane]);
    const float mean = chains[0].mean;
    const float variance = chains[0].squares / static_cast<float>(columns);
    const float inverse = 1 / std::sqrt(variance + 1e-5f * unit * unit);
    for (std::int64_t j = 0; j < columns; ++j)
      y[j] = (x[j] * unit - mean) * inverse * gamma[j] + beta[j];
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
