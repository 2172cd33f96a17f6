// cuBLAS in FP32 arithmetic, without TF32: one strided batch, as the column-major product C' = B'
// A'. A baseline; nothing here is tuned.
#include <kbeam/candidate.h>

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const std::int64_t m = c.dim(1), n = c.dim(2), k = a.dim(2);
  plan.gemm({.m = n,
             .n = m,
             .k = k,
             .batch = c.dim(0),
             .a = b.place,
             .b = a.place,
             .c = c.place,
             .lda = n,
             .ldb = k,
             .ldc = n,
             .stride_a = k * n,
             .stride_b = m * k,
             .stride_c = m * n});
}
