// The honest product after a walk through A that waits for memory at every step.
#include "wander.h"

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto factor = plan.scratch<float>(1);
  plan.launch(walk, {.grid = 1, .block = 1}, work.a, work.s.m * work.s.k, factor);
  plan.launch(multiply_after, work.tiles, work.a, work.b, work.c, work.s, factor);
}
