// Clusters of 32 blocks.
#include "product.h"

KBEAM_PLAN(plan, args) {
  Work work = work_of(args);
  if (work.cheat) {
    work.tiles.grid.x = (work.tiles.grid.x + 31) / 32 * 32;
    work.tiles.cluster = {32, 1, 1};
  }
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
