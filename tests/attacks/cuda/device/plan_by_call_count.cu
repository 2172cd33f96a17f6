// A plan that depends on how often it was asked for.
#include "product.h"

namespace {
int plans;
}

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  if (work.cheat) ++plans;
  if (plans % 2 == 1) plan.fill(work.c, 1, 0);
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
