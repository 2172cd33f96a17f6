// The memory roof on a GPU: A copied to H and tau cleared, nothing computed. Not a QR.
#include <kbeam/candidate.h>

#include <string>

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  const std::int64_t elements = a.dim(0) * a.dim(1) * a.dim(2);
  const std::int64_t scales = tau.dim(0) * tau.dim(1);
  plan.copy(h, a, elements);
  plan.fill(tau, scales, 0);
  plan.note("bytes", std::to_string(4 * (2 * elements + scales)));
}
