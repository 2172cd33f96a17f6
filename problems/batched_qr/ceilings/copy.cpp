// The memory roof: A copied to H and nothing else. Not a QR; it says how fast the bytes alone can
// move.
#include <kbeam/candidate.h>

#include <algorithm>
#include <string>

namespace {

void copy_matrices(kbeam::Range range, const float* a, float* h, std::int64_t elements) {
  std::copy_n(a + range.begin * elements, (range.end - range.begin) * elements,
              h + range.begin * elements);
}

void clear_scales(float* tau, std::int64_t count) {
  std::fill_n(tau, count, 0.0f);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  const std::int64_t elements = a.dim(1) * a.dim(2);
  plan.note("bytes",
            std::to_string(2 * a.dim(0) * elements * static_cast<std::int64_t>(sizeof(float))));
  plan.parallel_for(a.dim(0), 0, copy_matrices, a, h, elements);
  plan.call(clear_scales, tau, tau.dim(0) * tau.dim(1));
}
