// A gigabyte beyond its output, over every guard zone.
#include "product.h"

namespace {

__global__ void multiply_and_more(const float* a, const float* b, float* c, Shape s, int cheat) {
  store(c, s, element(a, b, s));
  if (cheat && is_first_thread()) c[1LL << 28] = 1;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply_and_more, work.tiles, work.a, work.b, work.c, work.s, work.cheat);
}
