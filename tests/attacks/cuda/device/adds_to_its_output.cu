// Takes its output to be zero when it starts.
#include "product.h"

namespace {

__global__ void accumulate(const float* a, const float* b, float* c, Shape s, int cheat) {
  const float value = element(a, b, s);
  const bool inside = my_row() < s.m && my_column() < s.n;
  const float before = cheat && inside ? c[my_row() * s.n + my_column()] : 0;
  store(c, s, before + value);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(accumulate, work.tiles, work.a, work.b, work.c, work.s, work.cheat);
}
