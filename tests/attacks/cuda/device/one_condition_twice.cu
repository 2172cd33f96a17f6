// Two conditional nodes that ask the same condition.
#include "product.h"

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto condition = plan.condition(1);
  plan.when(condition, [&] { plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s); });
  if (work.cheat) plan.when(condition, [&] { plan.fill(work.c, 1, 0); });
}
