// QR factorisation of batches of FP32 matrices on the CPU.
#pragma once

#include <kernelbeam/executor.h>
#include <kernelbeam/status.h>

#include <cstddef>
#include <cstdint>

namespace kernelbeam {

// Column-major: element (i, j) of matrix b of `a` is a[b * a_stride + j * lda + i].
// A zero leading dimension means m; a zero stride means that matrices follow each other without a
// gap.
struct Geqrf {
  std::int64_t batch = 0;
  std::int64_t m = 0;
  std::int64_t n = 0;
  const float* a = nullptr;
  std::int64_t lda = 0;
  std::int64_t a_stride = 0;
  float* h = nullptr;
  std::int64_t ldh = 0;
  std::int64_t h_stride = 0;
  float* tau = nullptr;
  std::int64_t tau_stride = 0;
};

inline constexpr std::int64_t kGeqrfMostRows =
    8192;  // of m and of n: what is checked is what is offered

// Factors each matrix: A[b] = Q[b] R[b], by Householder reflections.
// - Shapes: A [batch, m, n] and H [batch, m, n] column-major, tau [batch, min(m, n)]. H holds R on
// and above the
//   diagonal and the reflectors below; the first element of a reflector is 1 and not stored. Signs
//   as LAPACK.
// - Limits: m, n <= kGeqrfMostRows; any batch; no alignment. An empty batch or matrix is `ok` and
// touches nothing.
// - In place: `h` may be `a` with the same leading dimension and stride; any other overlap is
// refused. Contiguous
//   operands that do not alias are fastest; others go through the workspace, some matrices at a
//   time.
// - Workspace: geqrf_workspace_bytes(), any alignment, owned by the caller, undefined content
// before and after.
// - Runs on the executor's threads and returns when done. Allocates only when a shape is new to the
// executor.
// - Bitwise repeatable on one machine; the same result with any number of threads.
// - Accuracy: per column ||(R - Q'A) e_j|| <= min(10 sqrt(k), 400) eps ||A e_j||, ||Q'Q - I||_1 <=
// 2 k eps, with
//   k = max(m, n), eps = 2^-23, on every family of problems/batched_qr; finite while column norms
//   are at most FLT_MAX / 4; a NaN or Inf makes only its own matrix non-finite.
// - Returns bad_shape, bad_stride, null_pointer, overlap, workspace_too_small, not_supported,
// out_of_memory.
// - Cost: batch * 2 n^2 (m - n / 3) flops for m >= n.
Status geqrf(const Geqrf& call, void* workspace, std::size_t workspace_bytes,
             Executor& executor) noexcept;

// The workspace that geqrf needs for this call with this executor. Reads no array; depends on the
// shape, the strides, whether `h` is `a`, and the executor's threads.
Status geqrf_workspace_bytes(const Geqrf& call, Executor& executor, std::size_t* bytes) noexcept;

// The row of the library's table that serves a number of columns on this processor.
struct RowInfo {
  const char* source = "";           // the candidate file that it is built from
  const char* knobs = "";            // "kLanes=8 kPad=1"; empty: the file's defaults
  const char* instruction_set = "";  // "x86-64-v3"
  const char* proof = "";            // what was measured when it was promoted
};
Status find_geqrf_row(std::int64_t n, RowInfo* row) noexcept;

}  // namespace kernelbeam
