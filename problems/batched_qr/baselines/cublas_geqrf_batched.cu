// cuBLAS's batched sgeqrf on H after a copy of A. A baseline; nothing here is tuned. Arguments
// as in cusolver_geqrf.cu.
#include <kbeam/candidate.h>

#include <algorithm>

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  const std::int64_t batch = a.dim(0), m = a.dim(1), n = a.dim(2);
  plan.copy(h, a, batch * m * n);
  plan.vendor_call("cublas.sgeqrf_batched", {h.place, tau.place},
                   {m, n, m, batch, m * n, std::min(m, n)});
}
