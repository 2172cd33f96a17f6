// A copy node into an input.
#include "product.h"

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
  const kbeam::DevicePointer<float> a{work.a.place};
  if (work.cheat) plan.copy(a, work.b, 4);
}
