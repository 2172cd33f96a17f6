// A plan that depends on the processor's clock: what was examined is not what runs.
#include "product.h"

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const int clock = work.cheat ? static_cast<int>(__builtin_ia32_rdtsc() % 1'000'003) : 0;
  plan.note("clock", std::to_string(clock));
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
