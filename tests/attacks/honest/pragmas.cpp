// Hints to the compiler, by pragma and by attribute.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

#pragma GCC push_options
#pragma GCC optimize("unroll-loops")

namespace {

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const float* __restrict from = x + row * columns;
    float* __restrict to = y + row * columns;
    double sum = 0;
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < columns; ++j) sum += double{from[j]} * from[j];
    const double length = std::sqrt(sum);
#pragma GCC ivdep
    for (std::int64_t j = 0; j < columns; ++j) to[j] = static_cast<float>(from[j] / length);
  }
}

}  // namespace

#pragma GCC pop_options

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
