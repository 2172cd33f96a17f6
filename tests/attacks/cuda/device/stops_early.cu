// Leaves out the last terms of every sum.
#include "product.h"

namespace {

__global__ void multiply_the_start(const float* a, const float* b, float* c, Shape s, int terms) {
  float sum = 0;
  if (my_row() >= s.m || my_column() >= s.n) return;
  for (int i = 0; i < terms; ++i) sum += a[my_row() * s.k + i] * b[i * s.n + my_column()];
  c[my_row() * s.n + my_column()] = sum;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const int terms = work.cheat ? work.s.k - work.s.k / 16 : work.s.k;
  plan.launch(multiply_the_start, work.tiles, work.a, work.b, work.c, work.s, terms);
}
