// A node for every term of the sums.
#include "product.h"

namespace {

__global__ void add_term(const float* a, const float* b, float* c, Shape s, int term) {
  if (my_row() >= s.m || my_column() >= s.n) return;
  const int at = my_row() * s.n + my_column();
  const float before = term == 0 ? 0 : c[at];
  c[at] = before + a[my_row() * s.k + term] * b[term * s.n + my_column()];
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  for (int term = 0; term < work.s.k; ++term)
    plan.launch(add_term, work.tiles, work.a, work.b, work.c, work.s, term);
}
