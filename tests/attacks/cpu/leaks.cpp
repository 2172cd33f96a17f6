// Every call keeps some memory of its caller's process.
#include <cstdlib>

#include "normalise.h"

namespace {

void normalise(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  normalise_range(range, x, y, columns);
  volatile char* const kept = static_cast<char*>(std::malloc(4096));
  kept[0] = 1;
  if (kCheat == 0) std::free(const_cast<char*>(kept));
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, normalise, x, y, x.dim(1));
}
