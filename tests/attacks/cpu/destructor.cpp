// Runs code when it is unloaded.
#include "normalise.h"

namespace {

volatile int ended;

__attribute__((destructor)) void end() {
  ended = 1;
}

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
