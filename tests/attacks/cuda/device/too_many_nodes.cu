// A plan of thirty thousand nodes.
#include "product.h"

namespace {

__global__ void nothing(float*) {}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  for (int i = 0; work.cheat && i < 30'000; ++i)
    plan.launch(nothing, {.grid = 1, .block = 1}, work.c);
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
