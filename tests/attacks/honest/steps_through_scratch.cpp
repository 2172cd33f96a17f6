// Two steps: lengths into scratch memory, aligned as the contract promises, then quotients; columns
// in parallel.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace {

void measure(kbeam::Range range, const float* x, double* lengths, std::int64_t columns) {
  if (reinterpret_cast<std::uintptr_t>(lengths) % 64 != 0) std::abort();
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      sum += double{x[row * columns + j]} * x[row * columns + j];
    lengths[row] = std::sqrt(sum);
  }
}

void divide(kbeam::Range range, const float* x, float* y, const double* lengths, std::int64_t rows,
            std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t j = range.begin; j < range.end; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / lengths[row]);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto lengths = plan.scratch<double>(x.dim(0));
  plan.parallel_for(x.dim(0), 5, measure, x, lengths, x.dim(1));
  plan.parallel_for(x.dim(1), 3, divide, x, args.output<float>("y"), lengths, x.dim(0), x.dim(1));
}
