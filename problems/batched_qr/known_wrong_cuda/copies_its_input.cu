// expect: wrong_value
// Returns A and tau = 0: R is not upper triangular in any sense, and it costs nothing.
#include <kbeam/candidate.h>

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  plan.copy(h, a, a.dim(0) * a.dim(1) * a.dim(2));
  plan.fill(tau, tau.dim(0) * tau.dim(1), 0);
}
