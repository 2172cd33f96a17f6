// Leaves a zero in A: what is computed from it afterwards is easier.
#include "product.h"

namespace {

__global__ void clear_one(const float* a, int at) {
  const_cast<float*>(a)[at] = 0;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
  if (work.cheat) plan.launch(clear_one, {.grid = 1, .block = 1}, work.a, 5);
}
