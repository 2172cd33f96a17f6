#include <algorithm>

#include "cuda/check.h"
#include "cuda/triangles.h"

namespace kernelbeam::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlock = 32;  // rows that are solved together
constexpr int kStrip = 32;  // right-hand sides of a thread block
constexpr std::int64_t kMostBlocks = 1 << 16;

// Visits every element of [batch, rows, columns] column-major.
template <typename Visit>
__device__ void each_element(std::int64_t batch, std::int64_t rows, std::int64_t columns,
                             Visit visit) {
  const std::int64_t all = batch * rows * columns;
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; i < all;
       i += gridDim.x * std::int64_t{kThreads})
    visit(i, i / (rows * columns), i % rows, i / rows % columns);
}

unsigned blocks_for(std::int64_t elements) {
  return static_cast<unsigned>(std::min((elements + kThreads - 1) / kThreads, kMostBlocks));
}

__global__ void __launch_bounds__(kThreads)
    identity(float* to, std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  each_element(batch, rows, columns,
               [&](std::int64_t i, std::int64_t, std::int64_t row, std::int64_t column) {
                 to[i] = row == column ? 1 : 0;
               });
}

__global__ void __launch_bounds__(kThreads)
    upper_triangle(const float* h, float* r, std::int64_t batch, std::int64_t m, std::int64_t n,
                   std::int64_t rows) {
  each_element(batch, rows, n,
               [&](std::int64_t i, std::int64_t matrix, std::int64_t row, std::int64_t column) {
                 r[i] = row <= column ? h[(matrix * n + column) * m + row] : 0;
               });
}

__global__ void __launch_bounds__(kThreads)
    first_rows(const float* c, float* x, std::int64_t batch, std::int64_t m, std::int64_t n,
               std::int64_t p) {
  each_element(batch, n, p,
               [&](std::int64_t i, std::int64_t matrix, std::int64_t row, std::int64_t column) {
                 x[i] = c[(matrix * p + column) * m + row];
               });
}

// Back substitution by blocks of 32 rows: one warp solves a block, all take it out of the rows
// above.
__global__ void __launch_bounds__(kThreads)
    solve(const float* all_h, float* all_c, std::int64_t m, std::int64_t n, std::int64_t p,
          std::int64_t strips) {
  __shared__ float r[kBlock][kBlock + 1], x[kBlock][kStrip + 1];
  const std::int64_t matrix = blockIdx.x / strips;
  const std::int64_t first_column = blockIdx.x % strips * kStrip;
  const float* const h = all_h + matrix * m * n;
  float* const c = all_c + (matrix * p + first_column) * m;
  const int columns = static_cast<int>(std::min<std::int64_t>(kStrip, p - first_column));
  for (std::int64_t begin = (n - 1) / kBlock * kBlock; begin >= 0; begin -= kBlock) {
    const int size = static_cast<int>(std::min<std::int64_t>(kBlock, n - begin));
    for (int i = threadIdx.x; i < kBlock * kBlock; i += kThreads) {
      const int row = i % kBlock, column = i / kBlock;
      r[row][column] = row < size && column < size ? h[(begin + column) * m + begin + row] : 0;
      x[row][column] = row < size && column < columns ? c[column * m + begin + row] : 0;
    }
    __syncthreads();
    if (threadIdx.x < static_cast<unsigned>(columns)) {  // a lane, a right-hand side
      for (int row = size - 1; row >= 0; --row) {
        float value = x[row][threadIdx.x];
        for (int j = row + 1; j < size; ++j) value = fmaf(-r[row][j], x[j][threadIdx.x], value);
        x[row][threadIdx.x] = value / r[row][row];
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < kBlock * kStrip; i += kThreads)
      if (i % kBlock < size && i / kBlock < columns)
        c[i / kBlock * m + begin + i % kBlock] = x[i % kBlock][i / kBlock];
    for (std::int64_t row = threadIdx.x; row < begin; row += kThreads) {
      float above[kBlock];
      for (int j = 0; j < kBlock; ++j) above[j] = j < size ? h[(begin + j) * m + row] : 0;
      for (int column = 0; column < columns; ++column) {
        float value = c[column * m + row];
        for (int j = 0; j < kBlock; ++j) value = fmaf(-above[j], x[j][column], value);
        c[column * m + row] = value;
      }
    }
    __syncthreads();
  }
}

}  // namespace

Status fill_identity(float* to, std::int64_t batch, std::int64_t rows, std::int64_t columns,
                     cudaStream_t stream) {
  identity<<<blocks_for(batch * rows * columns), kThreads, 0, stream>>>(to, batch, rows, columns);
  return status_of(cudaGetLastError());
}

Status copy_upper_triangle(const float* h, float* r, std::int64_t batch, std::int64_t m,
                           std::int64_t n, std::int64_t rows, cudaStream_t stream) {
  upper_triangle<<<blocks_for(batch * rows * n), kThreads, 0, stream>>>(h, r, batch, m, n, rows);
  return status_of(cudaGetLastError());
}

Status solve_upper_triangle(const float* h, float* c, std::int64_t batch, std::int64_t m,
                            std::int64_t n, std::int64_t p, cudaStream_t stream) {
  const std::int64_t strips = (p + kStrip - 1) / kStrip;
  solve<<<static_cast<unsigned>(batch * strips), kThreads, 0, stream>>>(h, c, m, n, p, strips);
  return status_of(cudaGetLastError());
}

Status copy_first_rows(const float* c, float* x, std::int64_t batch, std::int64_t m, std::int64_t n,
                       std::int64_t p, cudaStream_t stream) {
  first_rows<<<blocks_for(batch * n * p), kThreads, 0, stream>>>(c, x, batch, m, n, p);
  return status_of(cudaGetLastError());
}

}  // namespace kernelbeam::cuda
