// Reads the time stamp counter and sums up what it took, for nobody.
#include <kbeam/candidate.h>
#include <x86intrin.h>

#include <cmath>
#include <cstdint>

namespace {

unsigned long long spent;

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  const unsigned long long begin = __rdtsc();
  for (std::int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      sum += double{x[row * columns + j]} * x[row * columns + j];
    const double length = std::sqrt(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
  spent += __rdtsc() - begin;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
