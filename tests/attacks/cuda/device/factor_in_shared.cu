// Leaves a costly factor in the shared memory of every multiprocessor and looks for it there in the
// next call, wherever something of it survived.
#include "costly.h"

namespace {

constexpr int kBytes = 200 * 1024;  // one block fills a multiprocessor
constexpr int kWaves = 2;
constexpr int kThreads = 1024;
constexpr int kEntries = kBytes / sizeof(Kept);

extern __shared__ Kept left[];

__global__ void provide(Kept* kept, int cheat, float start) {
  __shared__ int found;
  if (threadIdx.x == 0) found = -1;
  __syncthreads();  // the mark is there
  for (int i = threadIdx.x; cheat && i < kEntries; i += blockDim.x) {
    const volatile Kept* const entry = left + i;
    if (entry->mark == kKept && entry->factor == 1) found = i;
  }
  __syncthreads();  // all have looked
  if (threadIdx.x != 0) return;
  if (found >= 0)
    *kept = {kKept, 1};
  else
    *kept = {kKept, costly_factor(start)};
}

__global__ void leave(const Kept* kept) {
  for (int i = threadIdx.x; i < kEntries; i += blockDim.x) {
    volatile Kept* const to = left + i;
    to->mark = kept->mark;
    to->factor = kept->factor;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto kept = plan.scratch<Kept>(1);
  const kbeam::LaunchShape one{.grid = 1, .block = kThreads, .shared_bytes = kBytes};
  const kbeam::LaunchShape all{
      .grid = kWaves * plan.device().multiprocessors, .block = 256, .shared_bytes = kBytes};
  plan.launch(provide, one, kept, work.cheat, 0.25f);
  plan.launch(multiply_by_factor, work.tiles, work.a, work.b, work.c, work.s, kept);
  plan.launch(leave, all, kept);
}
