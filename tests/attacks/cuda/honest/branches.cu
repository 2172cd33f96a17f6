// Four branches that run side by side, each a quarter of the rows, and a node that waits for all.
#include "product.h"

namespace {

constexpr int kBranches = 4;

__global__ void multiply_rows(const float* a, const float* b, float* c, Shape s, int begin,
                              int end) {
  for (int row = begin + blockIdx.x; row < end; row += gridDim.x)
    for (int column = threadIdx.x; column < s.n; column += blockDim.x) {
      float sum = 0;
      for (int i = 0; i < s.k; ++i) sum += a[row * s.k + i] * b[i * s.n + column];
      c[row * s.n + column] = sum;
    }
}

__global__ void nothing(float*) {}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  std::vector<kbeam::Node> branches;
  for (int i = 0; i < kBranches; ++i)
    branches.push_back(plan.launch(
        multiply_rows, {.grid = 32, .block = 128, .after = kbeam::at_start()}, work.a, work.b,
        work.c, work.s, work.s.m * i / kBranches, work.s.m * (i + 1) / kBranches));
  plan.launch(nothing, {.grid = 1, .block = 1, .after = kbeam::After(branches)}, work.c);
}
