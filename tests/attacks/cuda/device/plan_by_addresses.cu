// A plan that depends on where its own memory lies.
#include "product.h"

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto here = reinterpret_cast<std::uintptr_t>(&work);
  const auto place = work.cheat ? static_cast<int>(here >> 12 & 0xffff) : 0;
  plan.note("place", std::to_string(place));
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
