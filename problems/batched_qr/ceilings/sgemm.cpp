// The arithmetic roof: one OpenBLAS product of the same size a matrix, H = A A over the leading
// square. Not a QR; it says what flop rate a good library reaches on matrices this small.
#include <kbeam/candidate.h>

#include <algorithm>
#include <string>

extern "C" {
void sgemm_(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
            const float* beta, float* c, const int* ldc);
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] void openblas_set_num_threads(int threads);
}

namespace {

struct Shape {
  int m, n, k;
};

void multiply(kbeam::Range range, const float* a, float* h, Shape shape) {
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  const float one = 1, zero = 0;
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    const float* matrix = a + b * elements;
    sgemm_("N", "N", &shape.k, &shape.k, &shape.k, &one, matrix, &shape.m, matrix, &shape.m, &zero,
           h + b * elements, &shape.m);
  }
}

void clear_scales(float* tau, std::int64_t count) {
  std::fill_n(tau, count, 0.0f);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  if (!openblas_get_corename || !openblas_set_num_threads) {
    plan.not_supported("the BLAS that is linked here is not OpenBLAS; install libopenblas-dev");
    return;
  }
  openblas_set_num_threads(1);
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  Shape shape{};
  shape.m = static_cast<int>(a.dim(1));
  shape.n = static_cast<int>(a.dim(2));
  shape.k = std::min(shape.m, shape.n);
  const double flops = 2.0 * static_cast<double>(a.dim(0)) * shape.k * shape.k * shape.k;
  plan.note("flops", std::to_string(flops));
  plan.note("core", openblas_get_corename());
  plan.parallel_for(a.dim(0), 0, multiply, a, h, shape);
  plan.call(clear_scales, tau, tau.dim(0) * tau.dim(1));
}
