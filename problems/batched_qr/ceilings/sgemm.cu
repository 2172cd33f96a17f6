// The FP32 roof on a GPU: one cuBLAS product of the same size a matrix, H = A A over the leading
// square. Not a QR; it says what flop rate the vendor's library reaches on such a batch.
#include <kbeam/candidate.h>

#include <algorithm>
#include <string>

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  const std::int64_t batch = a.dim(0);
  const std::int64_t m = a.dim(1);
  const std::int64_t n = a.dim(2);
  const std::int64_t k = std::min(m, n);
  plan.gemm({.m = k,
             .n = k,
             .k = k,
             .batch = batch,
             .a = a.place,
             .b = a.place,
             .c = h.place,
             .lda = m,
             .ldb = m,
             .ldc = m,
             .stride_a = m * n,
             .stride_b = m * n,
             .stride_c = m * n});
  plan.fill(tau, batch * k, 0);
  plan.note("flops", std::to_string(2.0 * static_cast<double>(batch) * k * k * k));
}
