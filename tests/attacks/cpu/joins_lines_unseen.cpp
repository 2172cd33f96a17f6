// A blank behind the backslash: the compiler joins the lines all the same.
// clang-format off
#inc\ 
lude <chrono>
// clang-format on
#include "normalise.h"

static_assert(std::chrono::nanoseconds(3).count() == 3);

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, normalise_range, x, y, x.dim(1));
}
