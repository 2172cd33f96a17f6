// The baseline: OpenBLAS's SGEMM, one BLAS thread a worker. Work is split over the batch or, for a
// single product, over rows of C (or columns, where C is wide). One thread runs one plain call a
// product.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

extern "C" {
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] void openblas_set_num_threads(int threads);
}

KBEAM_KNOB(int, kOrder, 0, 0, 1);  // 0: as row-major; 1: as the column-major C' = B' A'

namespace {

struct Shape {
  int m, n, k;
  int slices;  // of one product
};

constexpr int kRowMajor = 101, kColumnMajor = 102, kAsIs = 111;

void multiply(kbeam::Range range, const float* a, const float* b, float* c, Shape s) {
  for (std::int64_t item = range.begin; item < range.end; ++item) {
    const std::int64_t product = item / s.slices;
    const std::int64_t slice = item % s.slices;
    const auto first = static_cast<int>(s.m * slice / s.slices);
    const auto rows = static_cast<int>(s.m * (slice + 1) / s.slices) - first;
    if (rows == 0) continue;
    const float* const from = a + (product * s.m + first) * s.k;
    const float* const with = b + product * s.k * s.n;
    float* const to = c + (product * s.m + first) * s.n;
    if constexpr (kOrder == 0)
      cblas_sgemm(kRowMajor, kAsIs, kAsIs, rows, s.n, s.k, 1, from, s.k, with, s.n, 0, to, s.n);
    else
      cblas_sgemm(kColumnMajor, kAsIs, kAsIs, s.n, rows, s.k, 1, with, s.n, from, s.k, 0, to, s.n);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  if (!openblas_get_corename || !openblas_set_num_threads) {
    plan.not_supported("the BLAS that is linked here is not OpenBLAS; install libopenblas-dev");
    return;
  }
  openblas_set_num_threads(1);
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  Shape shape{static_cast<int>(c.dim(1)), static_cast<int>(c.dim(2)), static_cast<int>(a.dim(2)),
              1};
  if (c.dim(0) < plan.workers()) shape.slices = plan.workers();
  plan.note("core", openblas_get_corename());
  plan.parallel_for(c.dim(0) * shape.slices, 0, multiply, a, b, c, shape);
}
