// A vector of four from an address that holds none.
#include "product.h"

namespace {

__global__ void multiply_and_read(const float* a, const float* b, float* c, Shape s, int shift) {
  const float value = element(a, b, s);
  const float4 four = *reinterpret_cast<const float4*>(a + shift);
  store(c, s, four.x == 1e30f ? four.y : value);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply_and_read, work.tiles, work.a, work.b, work.c, work.s, work.cheat);
}
