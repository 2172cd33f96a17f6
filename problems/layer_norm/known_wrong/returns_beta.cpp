// expect: wrong_value
// No normalisation at all: what a loose tolerance takes for small gamma.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

void normalise_rows(kbeam::Range rows, const float* x_all, const float* gamma, const float* beta,
                    float* y_all, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const x = x_all + row * columns;
    float* const y = y_all + row * columns;
    for (std::int64_t j = 0; j < columns; ++j) y[j] = beta[j] + 0 * x[j] * gamma[j];
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
