// expect: wrong_value
// caught by: element_error on dense, positive, low_rank
// Sums kept to 14 bits, as accumulators of early tensor cores: a bias that positive terms show.
#include <kbeam/candidate.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

// To the nearest number with 14 bits; what is not finite stays.
float narrow(float value) {
  if (!std::isfinite(value)) return value;
  constexpr std::uint32_t kDropped = 10;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = (1u << (kDropped - 1)) - 1 + (bits >> kDropped & 1);
  return std::bit_cast<float>((bits + half) & ~((1u << kDropped) - 1));
}

void multiply_rows(kbeam::Range rows, const float* a_all, const float* b_all, float* c_all,
                   Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const a = a_all + row * s.k;
    const float* const b = b_all + row / s.m * s.k * s.n;
    float* const c = c_all + row * s.n;
    for (std::int64_t first = 0; first < s.n; first += 16) {
      const std::int64_t last = first + 16 < s.n ? first + 16 : s.n;
      float sums[16] = {};
      for (std::int64_t l = 0; l < s.k; ++l)
        for (std::int64_t j = first; j < last; ++j)
          sums[j - first] = narrow(sums[j - first] + a[l] * b[l * s.n + j]);
      for (std::int64_t j = first; j < last; ++j) c[j] = sums[j - first];
    }
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Shape shape{c.dim(1), c.dim(2), a.dim(2)};
  plan.parallel_for(c.dim(0) * shape.m, 0, multiply_rows, a, b, c, shape);
}
