// As many blocks as the device holds draw rows from one counter until none is left.
#include "product.h"

namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    draw_rows(const float* a, const float* b, float* c, Shape s, int* next) {
  __shared__ int drawn;
  for (;;) {
    __syncthreads();  // the row before is done with
    if (threadIdx.x == 0) drawn = atomicAdd(next, 1);
    __syncthreads();  // the row is known to all
    const int row = drawn;
    if (row >= s.m) return;
    for (int column = threadIdx.x; column < s.n; column += kThreads) {
      float sum = 0;
      for (int i = 0; i < s.k; ++i) sum += a[row * s.k + i] * b[i * s.n + column];
      c[row * s.n + column] = sum;
    }
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto next = plan.zeroed_scratch<int>(1);
  const int resident = plan.resident_blocks(draw_rows, kThreads, 0) * plan.device().multiprocessors;
  plan.launch(draw_rows, {.grid = resident, .block = kThreads}, work.a, work.b, work.c, work.s,
              next);
}
