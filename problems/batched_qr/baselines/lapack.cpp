// The baseline: OpenBLAS's own QR routines, called on H after a copy of A, one BLAS thread a
// worker. Workspace is sized while planning, so no call allocates. Not for tuning beyond the choice
// of routine.
#include <kbeam/candidate.h>

#include <algorithm>
#include <string_view>

KBEAM_KNOB(int, kRoutine, 0, 0, 1, 2);        // 0 sgeqrf, 1 sgeqr2, 2 sgeqrt
KBEAM_KNOB(int, kBlock, 32, 16, 32, 48, 64);  // columns a block of sgeqrt
KBEAM_REQUIRE(kRoutine == 2 || kBlock == 32, "only sgeqrt is told the columns of a block");

extern "C" {
void sgeqrf_(const int* m, const int* n, float* a, const int* lda, float* tau, float* work,
             const int* lwork, int* info);
void sgeqr2_(const int* m, const int* n, float* a, const int* lda, float* tau, float* work,
             int* info);
void sgeqrt_(const int* m, const int* n, const int* nb, float* a, const int* lda, float* t,
             const int* ldt, float* work, int* info);
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] char* openblas_get_config();
[[gnu::weak]] void openblas_set_num_threads(int threads);
}

namespace {

struct Shape {
  int m, n, k;
  int block;  // sgeqrt: columns a block
  int work;   // floats of LAPACK workspace
};

// Floats of workspace; for sgeqrt the triangular factors of every block come first.
int query_workspace(const Shape& shape) {
  if constexpr (kRoutine == 1) return shape.n;
  if constexpr (kRoutine == 2) return shape.block * shape.n;
  float best = 0, unused = 0;
  const int query = -1;
  int info = 0;
  sgeqrf_(&shape.m, &shape.n, &unused, &shape.m, &unused, &best, &query, &info);
  return std::max(static_cast<int>(best), shape.n);
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, float* work, Shape shape) {
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    float* matrix = h + b * elements;
    float* scales = tau + b * shape.k;
    std::copy_n(a + b * elements, elements, matrix);
    int info = 0;
    if constexpr (kRoutine == 0) {
      sgeqrf_(&shape.m, &shape.n, matrix, &shape.m, scales, work, &shape.work, &info);
    } else if constexpr (kRoutine == 1) {
      sgeqr2_(&shape.m, &shape.n, matrix, &shape.m, scales, work, &info);
    } else {
      float* t = work + shape.work;
      sgeqrt_(&shape.m, &shape.n, &shape.block, matrix, &shape.m, t, &shape.block, work, &info);
      for (int j = 0; j < shape.k; ++j)
        scales[j] = t[std::int64_t{j} * shape.block + j % shape.block];
    }
  }
}

// The cores for which OpenBLAS has only plain C or SSE kernels: beating those would prove nothing.
bool is_generic(std::string_view core) {
  for (const char* name :
       {"Generic", "GENERIC", "generic", "Prescott", "Core2", "Katmai", "Coppermine", "Northwood",
        "Banias", "Opteron", "Athlon", "Nano", "Atom", "Unknown", "unknown"})
    if (core.find(name) != std::string_view::npos) return true;
  return false;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  if (!openblas_get_corename || !openblas_get_config || !openblas_set_num_threads) {
    plan.not_supported(
        "the LAPACK that is linked here is not OpenBLAS, so it is no fair baseline; install "
        "libopenblas-dev and make it the "
        "default with update-alternatives");
    return;
  }
  const std::string core = openblas_get_corename();
  plan.note("library", openblas_get_config());
  plan.note("core", core);
  if (is_generic(core)) {
    plan.not_supported(
        "OpenBLAS runs its slow kernels for core '" + core +
        "'; unset OPENBLAS_CORETYPE, or install an OpenBLAS built with DYNAMIC_ARCH");
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
  shape.block = std::min(kBlock, shape.k);
  shape.work = query_workspace(shape);
  const std::int64_t triangles = kRoutine == 2 ? std::int64_t{shape.block} * shape.k : 0;
  const auto work = plan.worker_scratch<float>(shape.work + triangles);
  plan.parallel_for(a.dim(0), 0, factor, a, h, tau, work, shape);
}
