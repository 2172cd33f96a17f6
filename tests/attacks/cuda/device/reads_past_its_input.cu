// Sums one element too many and trusts that zeros follow.
#include "product.h"

namespace {

__global__ void multiply_and_read(const float* a, const float* b, float* c, Shape s, int beyond) {
  const float value = element(a, b, s);
  const std::int64_t end = static_cast<std::int64_t>(s.m) * s.k;
  store(c, s, beyond ? value + a[end] + a[-1] : value);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply_and_read, work.tiles, work.a, work.b, work.c, work.s, work.cheat);
}
