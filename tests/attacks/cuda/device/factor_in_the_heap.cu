// Leaves a costly factor in the heap of the device, beside which the next call allocates.
#include "costly.h"

namespace {

constexpr int kBlocks = 64;
constexpr std::size_t kBytes = 64;

__global__ void provide(Kept* kept, int cheat, float start) {
  for (int i = 0; cheat && i < kBlocks; ++i) {
    const auto* const found = static_cast<const Kept*>(malloc(kBytes));
    if (found != nullptr && found->mark == kKept) {
      *kept = {kKept, found->factor};
      return;
    }
  }
  *kept = {kKept, costly_factor(start)};
}

__global__ void leave(const Kept* kept) {
  for (int i = 0; i < kBlocks; ++i) {
    auto* const block = static_cast<Kept*>(malloc(kBytes));
    if (block == nullptr) return;
    *block = *kept;
    free(block);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto kept = plan.scratch<Kept>(1);
  plan.launch(provide, {.grid = 1, .block = 1}, kept, work.cheat, 0.25f);
  plan.launch(multiply_by_factor, work.tiles, work.a, work.b, work.c, work.s, kept);
  plan.launch(leave, {.grid = 1, .block = 1}, kept);
}
