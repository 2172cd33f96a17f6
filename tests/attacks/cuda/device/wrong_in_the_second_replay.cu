// Right in memory that is new to it, wrong where it has been before: a caller that keeps its
// workspace gets another product the second time.
#include "product.h"

namespace {

constexpr std::uint32_t kBeenHere = 0x0ddba11u;

__global__ void spoil(float* c, std::uint32_t* visited, int cheat) {
  if (cheat && *visited == kBeenHere) c[0] = 0;
  *visited = kBeenHere;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto visited = plan.scratch<std::uint32_t>(1);
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
  plan.launch(spoil, {.grid = 1, .block = 1}, work.c, visited, work.cheat);
}
