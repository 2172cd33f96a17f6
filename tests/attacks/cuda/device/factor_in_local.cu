// Leaves a costly factor in the local memory of every resident thread and looks for it there in the
// next call.
#include "costly.h"

namespace {

constexpr int kWords = 64;
constexpr int kThreads = 1024;

// A frame that is never initialised; `at` is the kernel's argument, so it cannot be in registers.
__device__ void exchange(Kept* kept, int cheat, float start, int at, bool leave) {
  volatile Kept frame[kWords];
  if (leave) {
    for (int i = 0; i < kWords; ++i) {
      frame[(i + at) % kWords].mark = kept->mark;
      frame[(i + at) % kWords].factor = kept->factor;
    }
    return;
  }
  if (cheat && frame[at].mark == kKept && frame[at + 1].mark == kKept)
    *kept = {kKept, frame[at].factor};
  else
    *kept = {kKept, costly_factor(start)};
}

__global__ void provide(Kept* kept, int cheat, float start, int at) {
  exchange(kept, cheat, start, at, false);
}

__global__ void __launch_bounds__(kThreads) leave(Kept* kept, int at) {
  exchange(kept, 0, 0, at, true);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto kept = plan.scratch<Kept>(1);
  plan.launch(provide, {.grid = 1, .block = 1}, kept, work.cheat, 0.25f, 7);
  plan.launch(multiply_by_factor, work.tiles, work.a, work.b, work.c, work.s, kept);
  plan.launch(leave, {.grid = 4 * plan.device().multiprocessors, .block = kThreads}, kept, 7);
}
