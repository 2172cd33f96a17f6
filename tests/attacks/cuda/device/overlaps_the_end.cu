// The kernel that works lets its successor start at once; that one, the last, ends at once. Whoever
// takes the last kernel's end for the end does not see the work.
#include "costly.h"

namespace {

__global__ void multiply_late(const float* a, const float* b, float* c, Shape s, float start,
                              int cheat) {
  if (cheat) asm volatile("griddepcontrol.launch_dependents;");
  const float factor = costly_factor(start);
  store(c, s, factor * element(a, b, s));
}

__global__ void end(float*) {}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply_late, work.tiles, work.a, work.b, work.c, work.s, 0.25f, work.cheat);
  plan.launch(end, {.grid = 1, .block = 1, .overlap_previous = true}, work.c);
}
