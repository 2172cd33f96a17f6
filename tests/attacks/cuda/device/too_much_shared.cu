// Asks for more shared memory than a multiprocessor has.
#include "product.h"

KBEAM_PLAN(plan, args) {
  Work work = work_of(args);
  if (work.cheat) work.tiles.shared_bytes = 300 << 10;
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
