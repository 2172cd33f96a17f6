// A sum that is unrolled by templates of every length up to 64.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>
#include <utility>

namespace {

template <int... kColumns>
double squares(const float* x, std::integer_sequence<int, kColumns...>) {
  return ((double{x[kColumns]} * x[kColumns]) + ... + 0.0);
}

template <int kWidth>
double part(const float* x, std::int64_t left) {
  if (left >= kWidth)
    return squares(x, std::make_integer_sequence<int, kWidth>()) +
           part<kWidth>(x + kWidth, left - kWidth);
  if constexpr (kWidth > 1) return part<kWidth - 1>(x, left);
  return 0;
}

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const double length = std::sqrt(part<64>(x + row * columns, columns));
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
