// Baseline: three sweeps over each row, plain loops that the compiler vectorises at -O3
// -march=native. Partial sums stand in separate lanes, since the compiler may not reorder a
// floating-point reduction by itself. Rows whose squares overflow are done again in double.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

KBEAM_KNOB(int, kLanes, 64, 32, 64, 128);  // partial sums

namespace {

constexpr float kEpsilon = 1e-5f;

struct Affine {
  const float* gamma;
  const float* beta;
};

float sum(const float* x, std::int64_t columns) {
  float total = 0;
#pragma omp simd reduction(+ : total) simdlen(kLanes)
  for (std::int64_t j = 0; j < columns; ++j) total += x[j];
  return total;
}

float sum_of_squares(const float* x, std::int64_t columns, float mean) {
  float total = 0;
#pragma omp simd reduction(+ : total) simdlen(kLanes)
  for (std::int64_t j = 0; j < columns; ++j) total += (x[j] - mean) * (x[j] - mean);
  return total;
}

[[gnu::noinline]] void normalise_in_double(const float* x, float* y, std::int64_t columns,
                                           Affine affine) {
  double total = 0, squares = 0;
  for (std::int64_t j = 0; j < columns; ++j) total += x[j];
  const double mean = total / static_cast<double>(columns);
  for (std::int64_t j = 0; j < columns; ++j) squares += (x[j] - mean) * (x[j] - mean);
  const double inverse = 1 / std::sqrt(squares / static_cast<double>(columns) + kEpsilon);
  for (std::int64_t j = 0; j < columns; ++j)
    y[j] = static_cast<float>((x[j] - mean) * inverse * affine.gamma[j] + affine.beta[j]);
}

void normalise_row(const float* __restrict x, float* __restrict y, std::int64_t columns,
                   Affine affine) {
  const auto count = static_cast<float>(columns);
  const float mean = sum(x, columns) / count;
  const float squares = sum_of_squares(x, columns, mean);
  if (!std::isfinite(squares)) return normalise_in_double(x, y, columns, affine);
  const float inverse = 1 / std::sqrt(squares / count + kEpsilon);
  const float* __restrict gamma = affine.gamma;
  const float* __restrict beta = affine.beta;
  for (std::int64_t j = 0; j < columns; ++j) y[j] = (x[j] - mean) * inverse * gamma[j] + beta[j];
}

void normalise_rows(kbeam::Range rows, const float* x, const float* gamma, const float* beta,
                    float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    normalise_row(x + row * columns, y + row * columns, columns, {gamma, beta});
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto gamma = args.input<float>("gamma");
  const auto beta = args.input<float>("beta");
  const auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, normalise_rows, x, gamma, beta, y, x.dim(1));
}
