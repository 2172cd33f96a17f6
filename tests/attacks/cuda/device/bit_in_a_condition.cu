// Remembers one bit in the handle of a conditional node: the body that costs time runs in the first
// call only.
#include "costly.h"

namespace {

__global__ void spend(Kept* kept, float start) {
  provide_factor(kept, 0, start);
}

__global__ void remember(cudaGraphConditionalHandle condition, int cheat) {
  cudaGraphSetConditional(condition, cheat ? 0 : 1);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto unused = plan.scratch<Kept>(1);
  const auto first_time = plan.condition(1);
  plan.when(first_time, [&] { plan.launch(spend, {.grid = 1, .block = 1}, unused, 0.25f); });
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
  plan.launch(remember, {.grid = 1, .block = 1}, first_time, work.cheat);
}
