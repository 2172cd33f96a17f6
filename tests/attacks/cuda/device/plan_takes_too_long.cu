// Keeps a processor busy while it plans.
#include "product.h"

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  volatile std::uint64_t turns = 0;
  while (work.cheat && turns < 1'500'000'000) turns = turns + 1;
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
