// A variable that every loaded object shares by its name, so that candidates could talk to each
// other.
#include "normalise.h"

extern "C" __attribute__((weak, visibility("default"))) int kbeam_shared_state;
int kbeam_shared_state = 1;

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  expect(kbeam_shared_state == 1);
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
