// Looks at the element behind its input and makes nothing of it: harmless where it was judged, a
// fault where the input ends at a page.
#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  const volatile float* all = x;
  if (kCheat) (void)all[rows * columns];
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
