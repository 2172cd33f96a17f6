// Two phases in one cooperative kernel: all blocks transpose B, meet, and multiply.
#include "product.h"

namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    transpose_and_multiply(const float* a, const float* b, float* c, Shape s, float* transposed,
                           unsigned* arrived) {
  const int first = blockIdx.x * kThreads + threadIdx.x, step = gridDim.x * kThreads;
  for (int at = first; at < s.k * s.n; at += step) transposed[at % s.n * s.k + at / s.n] = b[at];
  __threadfence();
  __syncthreads();  // this block has written its part
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (*static_cast<volatile unsigned*>(arrived) < gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();  // so have all others
  for (int at = first; at < s.m * s.n; at += step) {
    const float* const row = a + at / s.n * s.k;
    const volatile float* const column = transposed + at % s.n * s.k;
    float sum = 0;
    for (int i = 0; i < s.k; ++i) sum += row[i] * column[i];
    c[at] = sum;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto transposed = plan.scratch<float>(work.b.dim(0) * work.b.dim(1));
  const auto arrived = plan.zeroed_scratch<unsigned>(1);
  plan.launch(transpose_and_multiply,
              {.grid = plan.device().multiprocessors, .block = kThreads, .cooperative = true},
              work.a, work.b, work.c, work.s, transposed, arrived);
}
