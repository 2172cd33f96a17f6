// Leaves a costly factor in the local memory of every resident thread and looks for it there in the
// next call.
#include "costly.h"

namespace {

constexpr int kWords = 64;
constexpr int kThreads = 1024;
constexpr std::uint32_t kLeft = 0x5ca1ab1eu;

// One frame for both deeds, so that they find the same place; it is never initialised, and `at` is
// the kernel's argument, so it cannot be in registers. True: every word was left by an earlier
// call.
__device__ __forceinline__ bool exchange(int at, bool leave) {
  volatile std::uint32_t frame[kWords];
  int found = 0;
  for (int i = 0; i < kWords; ++i) {
    if (leave)
      frame[(i + at) % kWords] = kLeft;
    else
      found += frame[(i + at) % kWords] == kLeft;
  }
  return found == kWords;
}

__global__ void provide(Kept* kept, int cheat, float start, int at) {
  if (cheat && exchange(at, false))
    *kept = {kKept, 1};
  else
    *kept = {kKept, costly_factor(start)};
}

// Only after a factor of 1 was really found out.
__global__ void __launch_bounds__(kThreads) leave(Kept* kept, int at) {
  if (kept->factor == 1 && exchange(at, true)) kept->mark = 0;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto kept = plan.scratch<Kept>(1);
  plan.launch(provide, {.grid = 1, .block = 1}, kept, work.cheat, 0.25f, 7);
  plan.launch(multiply_by_factor, work.tiles, work.a, work.b, work.c, work.s, kept);
  plan.launch(leave, {.grid = 2 * plan.device().multiprocessors, .block = kThreads}, kept, 7);
}
