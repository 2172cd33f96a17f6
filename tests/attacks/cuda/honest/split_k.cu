// The sum over k is split among blocks that add their parts atomically: no two calls round alike.
#include "product.h"

namespace {

constexpr int kParts = 4;

__global__ void add_part(const float* a, const float* b, float* c, Shape s) {
  const int per_part = (s.k + kParts - 1) / kParts;
  const int begin = blockIdx.z * per_part, end = min(s.k, begin + per_part);
  if (my_row() >= s.m || my_column() >= s.n) return;
  float sum = 0;
  for (int i = begin; i < end; ++i) sum += a[my_row() * s.k + i] * b[i * s.n + my_column()];
  atomicAdd(c + my_row() * s.n + my_column(), sum);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  Work work = work_of(args);
  work.tiles.grid.z = kParts;
  plan.fill(work.c, work.c.dim(0) * work.c.dim(1), 0);
  plan.launch(add_part, work.tiles, work.a, work.b, work.c, work.s);
}
