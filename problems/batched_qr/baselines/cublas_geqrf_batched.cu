// cuBLAS's batched sgeqrf on H after a copy of A. A baseline; nothing here is tuned. Arguments
// as in cusolver_geqrf.cu.
#include <kbeam/candidate.h>

#include <algorithm>

namespace {
// Made for many small matrices: on an H200 cuSOLVER is ahead of it at 352, 1024, 2048 and 4096
// rows. Not timed beyond this, where its calls would take most of a campaign's baseline phase.
constexpr std::int64_t kMostRows = 1024;
}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  if (std::max(a.dim(1), a.dim(2)) > kMostRows)
    return plan.not_supported("cublasSgeqrfBatched is made for small matrices");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  const std::int64_t batch = a.dim(0), m = a.dim(1), n = a.dim(2);
  plan.copy(h, a, batch * m * n);
  plan.vendor_call("cublas.sgeqrf_batched", {h.place, tau.place},
                   {m, n, m, batch, m * n, std::min(m, n)});
}
