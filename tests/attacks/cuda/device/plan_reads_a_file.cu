// Opens a file of the machine that plans.
#include "product.h"

extern "C" int open(const char* path, int flags, ...);

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  if (work.cheat && open("/etc/passwd", 0) < 0) __builtin_trap();
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
