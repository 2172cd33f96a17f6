// Calls the CUDA runtime while it plans.
#include "product.h"

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  void* memory = nullptr;
  if (work.cheat) cudaMalloc(&memory, 1024);
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
