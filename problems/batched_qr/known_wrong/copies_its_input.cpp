// expect: wrong_value
// Returns A as H with tau = 0: right for upper triangular inputs, and for no other.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cmath>

namespace {

void factor(kbeam::Range range, const float* a, float* h, float* tau, std::int64_t m,
            std::int64_t n) {
  const std::int64_t count = range.end - range.begin;
  std::copy_n(a + range.begin * m * n, count * m * n, h + range.begin * m * n);
  std::fill_n(tau + range.begin * std::min(m, n), count * std::min(m, n), 0.0f);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  plan.parallel_for(a.dim(0), 1, factor, a, h, tau, a.dim(1), a.dim(2));
}
