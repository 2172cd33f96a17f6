// One row at a time with kAccumulators independent vectors, so that additions overlap.
#include <kbeam/candidate.h>

// name, default, choices: the engine tunes these without being told what they mean.
KBEAM_KNOB(int, kWidth, 8, 8, 16);
KBEAM_KNOB(int, kAccumulators, 2, 1, 2, 4, 8);
KBEAM_KNOB(int, kPrefetch, 0, 0, 512, 1024, 2048);  // elements ahead; 0: leave it to the hardware
KBEAM_REQUIRE(kWidth* kAccumulators <= 128, "the accumulators fit into the vector registers");

namespace {

using V = kbeam::Vector<float, kWidth>;

float sum_lanes(V v) {
  float sum = 0;
  for (int lane = 0; lane < kWidth; ++lane) sum += v[lane];
  return sum;
}

float sum_row(const float* x, std::int64_t columns) {
  constexpr std::int64_t kStep = kWidth * kAccumulators;
  V sums[kAccumulators] = {};
  std::int64_t j = 0;
  for (; j + kStep <= columns; j += kStep) {
    if constexpr (kPrefetch > 0)
      for (std::int64_t line = 0; line < kStep; line += 16)
        __builtin_prefetch(x + j + kPrefetch + line);
    for (int a = 0; a < kAccumulators; ++a) sums[a] += kbeam::load<V>(x + j + a * kWidth);
  }
  for (; j + kWidth <= columns; j += kWidth) sums[0] += kbeam::load<V>(x + j);
  for (int a = 1; a < kAccumulators; ++a) sums[0] += sums[a];
  float sum = sum_lanes(sums[0]);
  for (; j < columns; ++j) sum += x[j];
  return sum;
}

void sum_rows(kbeam::Range rows, const float* x, float* s, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    s[row] = sum_row(x + row * columns, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto s = args.output<float>("s");
  plan.parallel_for(x.dim(0), 0, sum_rows, x, s, x.dim(1));
}
