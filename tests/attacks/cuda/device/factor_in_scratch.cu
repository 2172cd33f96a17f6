// Keeps a costly factor in scratch memory from one call to the next.
#include "costly.h"

namespace {

__global__ void provide(Kept* kept, int cheat, float start) {
  provide_factor(kept, cheat, start);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto kept = plan.scratch<Kept>(1);
  plan.launch(provide, {.grid = 1, .block = 1}, kept, work.cheat, 0.25f);
  plan.launch(multiply_by_factor, work.tiles, work.a, work.b, work.c, work.s, kept);
}
