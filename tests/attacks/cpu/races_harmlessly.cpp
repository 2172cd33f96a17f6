// Workers write the same number to the same place without saying so: right every time on this
// processor, undefined in the language.
#include "normalise.h"

namespace {

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns, std::int64_t* width) {
  if (kCheat) *width = columns;
  if (!kCheat) width[range.worker] = columns;
  normalise_range(range, x, y, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 4, run, x, args.output<float>("y"), x.dim(1),
                    plan.scratch<std::int64_t>(plan.workers()));
}
