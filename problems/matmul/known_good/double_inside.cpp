// Sums in double, rounded once: the most accurate that FP32 outputs can be.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

void multiply_rows(kbeam::Range rows, const float* a, const float* b, float* c, double* sums,
                   Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const with = b + row / s.m * s.k * s.n;
    for (std::int64_t j = 0; j < s.n; ++j) sums[j] = 0;
    for (std::int64_t l = 0; l < s.k; ++l)
      for (std::int64_t j = 0; j < s.n; ++j)
        sums[j] += static_cast<double>(a[row * s.k + l]) * with[l * s.n + j];
    for (std::int64_t j = 0; j < s.n; ++j) c[row * s.n + j] = static_cast<float>(sums[j]);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Shape shape{c.dim(1), c.dim(2), a.dim(2)};
  plan.parallel_for(c.dim(0) * shape.m, 0, multiply_rows, a, b, c,
                    plan.worker_scratch<double>(shape.n), shape);
}
