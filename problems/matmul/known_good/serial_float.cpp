// One FP32 accumulator an element, terms in order, each product rounded before it is added: the
// least accurate of what is honest.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

[[gnu::optimize("fp-contract=off")]] void add_scaled(const float* from, float factor, float* to,
                                                     std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) to[j] += factor * from[j];
}

void multiply_rows(kbeam::Range rows, const float* a, const float* b, float* c, Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const with = b + row / s.m * s.k * s.n;
    float* const to = c + row * s.n;
    for (std::int64_t j = 0; j < s.n; ++j) to[j] = 0;
    for (std::int64_t l = 0; l < s.k; ++l) add_scaled(with + l * s.n, a[row * s.k + l], to, s.n);
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
