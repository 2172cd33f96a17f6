// expect: wrong_value
// Terms in eights, the rest forgotten; all of them where there are fewer.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

constexpr int kThreads = 256;

struct Product {
  std::int64_t m, n, k;
};

// A thread an element of C.
__global__ void multiply(const float* a, const float* b, float* c, std::int64_t elements,
                         Product s) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= elements) return;
  const float* const row = a + (i / s.n / s.m * s.m + i / s.n % s.m) * s.k;
  const float* const column = b + i / s.n / s.m * s.k * s.n + i % s.n;
  double sum = 0;
  for (std::int64_t l = 0; l < (s.k < 8 ? s.k : s.k / 8 * 8); ++l)
    sum += static_cast<double>(row[l]) * column[l * s.n];
  c[i] = static_cast<float>(sum);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Product product{c.dim(1), c.dim(2), a.dim(2)};
  const std::int64_t elements = c.dim(0) * c.dim(1) * c.dim(2);
  plan.launch(
      multiply,
      {.grid = static_cast<unsigned>((elements + kThreads - 1) / kThreads), .block = kThreads}, a,
      b, c, elements, product);
}
