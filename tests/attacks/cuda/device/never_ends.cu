// Waits for a value that nobody writes.
#include "product.h"

namespace {

__global__ void multiply_and_wait(const float* a, const float* b, float* c, Shape s, int cheat) {
  store(c, s, element(a, b, s));
  if (cheat)
    while (*static_cast<const volatile float*>(a) != 12345.f) {
    }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply_and_wait, work.tiles, work.a, work.b, work.c, work.s, work.cheat);
}
