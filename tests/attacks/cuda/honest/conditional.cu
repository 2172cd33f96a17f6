// A kernel looks at the data and decides which of two bodies multiplies.
#include "product.h"

namespace {

__global__ void decide(const float* a, cudaGraphConditionalHandle condition) {
  cudaGraphSetConditional(condition, a[0] > 0 ? 1 : 0);
}

__global__ void multiply_in_double(const float* a, const float* b, float* c, Shape s) {
  if (my_row() >= s.m || my_column() >= s.n) return;
  double sum = 0;
  for (int i = 0; i < s.k; ++i)
    sum += static_cast<double>(a[my_row() * s.k + i]) * b[i * s.n + my_column()];
  store(c, s, static_cast<float>(sum));
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto positive = plan.condition();
  plan.launch(decide, {.grid = 1, .block = 1}, work.a, positive);
  plan.when(
      positive, [&] { plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s); },
      [&] { plan.launch(multiply_in_double, work.tiles, work.a, work.b, work.c, work.s); });
}
