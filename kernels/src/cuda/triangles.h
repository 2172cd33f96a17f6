// What is done with R, and matrices that start as the identity. Gap-free, column-major.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelbeam/status.h>

#include <cstdint>

namespace kernelbeam::cuda {

// The first `columns` columns of the identity of order `rows`.
Status fill_identity(float* to, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                     cudaStream_t stream);

// R [batch, rows, n], rows <= m: what H [batch, m, n] holds on and above the diagonal, else zero.
Status copy_upper_triangle(const float* h, float* r, std::int64_t batch, std::int64_t m,
                           std::int64_t n, std::int64_t rows, cudaStream_t stream);

// The first n rows of C [batch, m, p] := R^-1 times them; R is the upper triangle of H [batch, m,
// n].
Status solve_upper_triangle(const float* h, float* c, std::int64_t batch, std::int64_t m,
                            std::int64_t n, std::int64_t p, cudaStream_t stream);

// X [batch, n, p]: the first n rows of C [batch, m, p].
Status copy_first_rows(const float* c, float* x, std::int64_t batch, std::int64_t m, std::int64_t n,
                       std::int64_t p, cudaStream_t stream);

}  // namespace kernelbeam::cuda
