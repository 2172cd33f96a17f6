// NaN compares false with every limit.
#include "product.h"

namespace {

__global__ void multiply_or_nan(const float* a, const float* b, float* c, Shape s, int cheat) {
  const float value = element(a, b, s);
  store(c, s, cheat ? __int_as_float(0x7fffffff) : value);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply_or_nan, work.tiles, work.a, work.b, work.c, work.s, work.cheat);
}
