// QR factorisation of batches of FP32 matrices on a GPU, and what one does with the factors.
//
// All calls
// - take arrays in device memory, enqueue on the caller's stream and return without waiting;
// nothing
//   synchronises or allocates device memory, so a call may be captured into a graph once its shape
//   has been seen (the first call of a shape records its plan and may load kernels);
// - need a workspace of `..._workspace_bytes`, 256-byte aligned, the caller's, of undefined content
//   before and after, not to be used by other work until the call is through; its size depends on
//   the shape, the layouts, and for geqrf on whether `h` is `a`;
// - limits: m, n <= kMostRows, batch <= kMostBatch; an empty batch or matrix is `ok` and touches
//   nothing;
// - layout: matrices that are column-major without gaps and no pointer array are taken as they are,
//   all others go through copies in the workspace; inputs and outputs may be the same arrays, laid
//   out alike, but must not overlap otherwise (not checked);
// - return bad_shape, bad_stride, null_pointer, workspace_too_small, not_supported, out_of_memory,
//   device_error;
// - are bitwise repeatable on one device.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelbeam/cuda/device.h>
#include <kernelbeam/cuda/matrices.h>
#include <kernelbeam/status.h>

#include <cstddef>
#include <cstdint>

namespace kernelbeam::cuda {

inline constexpr std::int64_t kMostRows =
    8192;  // of m and of n: what is checked is what is offered
inline constexpr std::int64_t kMostBatch = 1 << 20;

struct Workspace {
  void* memory = nullptr;
  std::size_t bytes = 0;
};

// A[b] = Q[b] R[b] by Householder reflections. A, H [batch, m, n]; tau [batch, min(m, n)], matrix
// b's from tau + b * tau_stride (0: no gap). H holds R on and above the diagonal and the reflectors
// below; the first element of a reflector is 1 and not stored. Signs as LAPACK's geqrf.
// Accuracy: per column ||(R - Q'A) e_j|| <= min(10 sqrt(k), 400) eps ||A e_j||, ||Q'Q - I||_1 <= 2
// k eps, k = max(m, n, 16), eps = 2^-23; finite while column norms are at most FLT_MAX / 4; a NaN
// or Inf makes only its own matrix non-finite. Cost: batch * 2 n^2 (m - n / 3) flops for m >= n.
struct Geqrf {
  std::int64_t batch = 0, m = 0, n = 0;
  ConstMatrices a;
  Matrices h;
  float* tau = nullptr;
  std::int64_t tau_stride = 0;
};
Status geqrf_workspace_bytes(const Geqrf& call, Device& device, std::size_t* bytes) noexcept;
Status geqrf(const Geqrf& call, Workspace workspace, Device& device, cudaStream_t stream) noexcept;

// C[b] := Q[b] C[b], or Q[b]' C[b] when `transpose`. H [batch, m, k] with its reflectors below the
// diagonal (a geqrf's H has them in its first k columns), tau [batch, k], C [batch, m, p], k <= m.
// Cost: batch * 2 p k (2 m - k) flops.
struct Ormqr {
  std::int64_t batch = 0, m = 0, p = 0, k = 0;
  bool transpose = false;
  ConstMatrices h;
  const float* tau = nullptr;
  std::int64_t tau_stride = 0;
  Matrices c;
};
Status ormqr_workspace_bytes(const Ormqr& call, Device& device, std::size_t* bytes) noexcept;
Status ormqr(const Ormqr& call, Workspace workspace, Device& device, cudaStream_t stream) noexcept;

// The first p columns of Q[b]: Q [batch, m, p], H [batch, m, k] as for ormqr, k <= m, p <= m.
struct Orgqr {
  std::int64_t batch = 0, m = 0, p = 0, k = 0;
  ConstMatrices h;
  const float* tau = nullptr;
  std::int64_t tau_stride = 0;
  Matrices q;
};
Status orgqr_workspace_bytes(const Orgqr& call, Device& device, std::size_t* bytes) noexcept;
Status orgqr(const Orgqr& call, Workspace workspace, Device& device, cudaStream_t stream) noexcept;

// Q [batch, m, p] and R [batch, min(m, p), n], zero below the diagonal, with p = min(m, n), or m
// when `complete`.
struct Qr {
  std::int64_t batch = 0, m = 0, n = 0;
  bool complete = false;
  ConstMatrices a;
  Matrices q;
  Matrices r;
};
Status qr_workspace_bytes(const Qr& call, Device& device, std::size_t* bytes) noexcept;
Status qr(const Qr& call, Workspace workspace, Device& device, cudaStream_t stream) noexcept;

// Least squares: X[b] = argmin ||A[b] X - B[b]||, column by column. A [batch, m, n] with m >= n,
// B [batch, m, p], X [batch, n, p]. Where R has a zero on its diagonal, X is not finite.
struct QrSolve {
  std::int64_t batch = 0, m = 0, n = 0, p = 0;
  ConstMatrices a;
  ConstMatrices b;
  Matrices x;
};
Status qr_solve_workspace_bytes(const QrSolve& call, Device& device, std::size_t* bytes) noexcept;
Status qr_solve(const QrSolve& call, Workspace workspace, Device& device,
                cudaStream_t stream) noexcept;

// The row of the library's table that serves a shape on this device.
struct RowInfo {
  const char* source = "";  // the candidate file that it is built from
  const char* knobs = "";   // "kThreads=256"; empty: the file's defaults
  const char* proof = "";   // what was measured when it was promoted
};
Status find_geqrf_row(std::int64_t batch, std::int64_t m, std::int64_t n, Device& device,
                      RowInfo* row) noexcept;

}  // namespace kernelbeam::cuda
