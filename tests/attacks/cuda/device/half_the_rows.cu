// Works for the first half of the rows; the rest gets the rows above once more.
#include "product.h"

namespace {

__global__ void repeat_rows(float* c, Shape s) {
  const int first = (s.m + 1) / 2;
  for (int row = first + blockIdx.x; row < s.m; row += gridDim.x)
    for (int column = threadIdx.x; column < s.n; column += blockDim.x)
      c[row * s.n + column] = c[(row - first) * s.n + column];
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
  if (work.cheat) plan.launch(repeat_rows, {.grid = 8, .block = 128}, work.c, work.s);
}
