// Launches its kernel itself.
#include "product.h"

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  if (work.cheat) multiply<<<1, 256>>>(nullptr, nullptr, nullptr, work.s);
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
