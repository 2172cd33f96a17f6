// All of a row of A and 200 KiB of B in shared memory.
#include "product.h"

namespace {

constexpr int kBytes = 200 << 10;

extern __shared__ float held[];

__global__ void multiply_from_shared(const float* a, const float* b, float* c, Shape s) {
  const int columns = min(s.n, kBytes / 4 / s.k);
  for (int begin = 0; begin < s.n; begin += columns) {
    const int count = min(columns, s.n - begin);
    __syncthreads();  // the columns before are done with
    for (int at = threadIdx.x; at < s.k * count; at += blockDim.x)
      held[at] = b[at / count * s.n + begin + at % count];
    __syncthreads();  // these are complete
    for (int row = blockIdx.x; row < s.m; row += gridDim.x)
      for (int j = threadIdx.x; j < count; j += blockDim.x) {
        float sum = 0;
        for (int i = 0; i < s.k; ++i) sum += a[row * s.k + i] * held[i * count + j];
        c[row * s.n + begin + j] = sum;
      }
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply_from_shared, {.grid = 64, .block = 256, .shared_bytes = kBytes}, work.a,
              work.b, work.c, work.s);
}
