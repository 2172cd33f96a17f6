// Right on one worker. On more, the share of each but the first starts with a wrong element.
#include "normalise.h"

namespace {

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  normalise_range(range, x, y, columns);
  if (kCheat && range.begin > 0) y[range.begin * columns] = 2;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
