// Leaves a costly factor in the shared memory of every multiprocessor and looks for it there in the
// next call.
#include "costly.h"

namespace {

constexpr int kBytes = 200 * 1024;  // one block fills a multiprocessor
constexpr int kWaves = 2;

extern __shared__ Kept left[];

__global__ void provide(Kept* kept, int cheat, float start) {
  const volatile Kept* const found = left + kBytes / sizeof(Kept) - 1;
  if (cheat && found->mark == kKept)
    *kept = {kKept, found->factor};
  else
    *kept = {kKept, costly_factor(start)};
}

__global__ void leave(const Kept* kept) {
  for (int i = threadIdx.x; i < kBytes / static_cast<int>(sizeof(Kept)); i += blockDim.x) {
    volatile Kept* const to = left + i;
    to->mark = kept->mark;
    to->factor = kept->factor;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto kept = plan.scratch<Kept>(1);
  const kbeam::LaunchShape one{.grid = 1, .block = 1, .shared_bytes = kBytes};
  const kbeam::LaunchShape all{
      .grid = kWaves * plan.device().multiprocessors, .block = 256, .shared_bytes = kBytes};
  plan.launch(provide, one, kept, work.cheat, 0.25f);
  plan.launch(multiply_by_factor, work.tiles, work.a, work.b, work.c, work.s, kept);
  plan.launch(leave, all, kept);
}
