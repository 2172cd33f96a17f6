// Rows in the order of a table that the plan computed.
#include "product.h"

namespace {

__global__ void multiply_in_order(const float* a, const float* b, float* c, Shape s,
                                  const int* order) {
  const int row = order[blockIdx.x];
  for (int column = threadIdx.x; column < s.n; column += blockDim.x) {
    float sum = 0;
    for (int i = 0; i < s.k; ++i) sum += a[row * s.k + i] * b[i * s.n + column];
    c[row * s.n + column] = sum;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  std::vector<int> order;
  for (int i = 0; i < 2; ++i)
    for (int row = i; row < work.s.m; row += 2) order.push_back(row);
  plan.launch(multiply_in_order, {.grid = work.s.m, .block = 128}, work.a, work.b, work.c, work.s,
              plan.table(order));
}
