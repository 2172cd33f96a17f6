#include <algorithm>

#include "cuda/block_reflectors.h"
#include "cuda/check.h"

namespace kernelbeam::cuda {
namespace {

constexpr int kBlock = 32;  // reflectors of a block
constexpr int kStrip = 32;  // columns of C that a thread block holds
constexpr int kTile = 32;   // rows at a time
constexpr int kThreads = 256;
constexpr int kEntries = kBlock * kStrip / kThreads;  // of a 32 x 32 product, a thread
constexpr int kTriangle = kBlock * kBlock;
constexpr std::int64_t kMostGrid = 65535;  // of y

__host__ __device__ constexpr std::int64_t blocks_of(std::int64_t k) {
  return (k + kBlock - 1) / kBlock;
}

using Tile = float[kTile][kBlock + 1];

// Row r, reflector a of the block that begins at column j0: one on the diagonal, zero above, and
// zero beyond the last reflector and row.
__device__ float reflector_entry(const float* h, std::int64_t m, std::int64_t k, std::int64_t j0,
                                 std::int64_t row, int a) {
  const std::int64_t column = j0 + a;
  if (row >= m || column >= k || row < column) return 0;
  return row == column ? 1 : h[column * m + row];
}

// A thread takes one row of a 32 x 32 product and every eighth column.
struct Place {
  int row = threadIdx.x % kBlock;
  int first = threadIdx.x / kBlock;
  static constexpr int kStep = kThreads / kBlock;
};

__device__ void load_reflectors(Tile& v, const float* h, std::int64_t m, std::int64_t k,
                                std::int64_t j0, std::int64_t row) {
  for (int i = threadIdx.x; i < kTile * kBlock; i += kThreads)
    v[i % kTile][i / kTile] = reflector_entry(h, m, k, j0, row + i % kTile, i / kTile);
}

// sum[e] += column a of `left` times column b of `right`, over the rows of a tile.
__device__ void add_products(const Tile& left, const Tile& right, float (&sum)[kEntries]) {
  const Place at;
#pragma unroll 8
  for (int r = 0; r < kTile; ++r) {
    const float x = left[r][at.row];
#pragma unroll
    for (int e = 0; e < kEntries; ++e)
      sum[e] = fmaf(x, right[r][at.first + e * Place::kStep], sum[e]);
  }
}

__global__ void __launch_bounds__(kThreads)
    form_factors(const float* all_h, const float* all_tau, float* all_t, ReflectorShape shape) {
  __shared__ Tile v;
  __shared__ float gram[kBlock][kBlock + 1], t[kBlock][kBlock + 1];
  const std::int64_t matrix = blockIdx.x / blocks_of(shape.k);
  const std::int64_t block = blockIdx.x % blocks_of(shape.k), j0 = block * kBlock;
  const float* const h = all_h + matrix * shape.m * shape.h_columns;
  const float* const tau = all_tau + matrix * shape.tau_stride + j0;
  const Place at;
  float sum[kEntries] = {};
  for (std::int64_t row = j0; row < shape.m; row += kTile) {
    load_reflectors(v, h, shape.m, shape.k, j0, row);
    __syncthreads();
    add_products(v, v, sum);
    __syncthreads();
  }
  for (int e = 0; e < kEntries; ++e) {
    gram[at.row][at.first + e * Place::kStep] = sum[e];
    t[at.row][at.first + e * Place::kStep] = 0;
  }
  __syncthreads();
  if (threadIdx.x < kBlock) {  // lane a makes row a, a column after the other
    const int a = threadIdx.x;
    for (int b = 0; b < kBlock; ++b) {
      const float scale = j0 + b < shape.k ? tau[b] : 0;
      float product = 0;
      for (int c = a; c < b; ++c) product = fmaf(t[a][c], gram[c][b], product);
      __syncwarp();
      if (a < b) t[a][b] = -scale * product;
      if (a == b) t[a][b] = scale;
      __syncwarp();
    }
  }
  __syncthreads();
  float* const out = all_t + blockIdx.x * std::int64_t{kTriangle};
  for (int i = threadIdx.x; i < kTriangle; i += kThreads) out[i] = t[i % kBlock][i / kBlock];
}

// One strip of C through all blocks of reflectors of its matrix, in the order that Q or Q' wants.
template <Apply kWhich>
__global__ void __launch_bounds__(kThreads)
    apply_blocks(const float* all_h, const float* all_t, float* all_c, ReflectorShape shape,
                 bool c_is_identity) {
  __shared__ Tile v, tile;
  __shared__ float t[kBlock][kBlock + 1], w[kBlock][kStrip + 1];
  const Place at;
  const std::int64_t count = blocks_of(shape.k), first_column = blockIdx.x * std::int64_t{kStrip};
  for (std::int64_t matrix = blockIdx.y; matrix < shape.batch; matrix += gridDim.y) {
    const float* const h = all_h + matrix * shape.m * shape.h_columns;
    float* const c = all_c + matrix * shape.m * shape.p;
    const auto load_tile = [&](std::int64_t row) {
      for (int i = threadIdx.x; i < kTile * kStrip; i += kThreads) {
        const std::int64_t r = row + i % kTile, column = first_column + i / kTile;
        tile[i % kTile][i / kTile] = r < shape.m && column < shape.p ? c[column * shape.m + r] : 0;
      }
    };
    for (std::int64_t turn = 0; turn < count; ++turn) {
      const std::int64_t block = kWhich == Apply::q ? count - 1 - turn : turn;
      const std::int64_t j0 = block * kBlock;
      // Below row j0 these columns of I are still zero.
      if (c_is_identity && first_column + kStrip <= j0) continue;
      const float* const factor = all_t + (matrix * count + block) * kTriangle;
      for (int i = threadIdx.x; i < kTriangle; i += kThreads) t[i % kBlock][i / kBlock] = factor[i];
      float sum[kEntries] = {};
      for (std::int64_t row = j0; row < shape.m; row += kTile) {
        load_reflectors(v, h, shape.m, shape.k, j0, row);
        load_tile(row);
        __syncthreads();
        add_products(v, tile, sum);
        __syncthreads();
      }
      for (int e = 0; e < kEntries; ++e) w[at.row][at.first + e * Place::kStep] = sum[e];
      __syncthreads();
      float scaled[kEntries] = {};
      for (int i = 0; i < kBlock; ++i) {
        const float factor_entry = kWhich == Apply::q ? t[at.row][i] : t[i][at.row];
        for (int e = 0; e < kEntries; ++e)
          scaled[e] = fmaf(factor_entry, w[i][at.first + e * Place::kStep], scaled[e]);
      }
      __syncthreads();
      for (int e = 0; e < kEntries; ++e) w[at.row][at.first + e * Place::kStep] = scaled[e];
      for (std::int64_t row = j0; row < shape.m; row += kTile) {
        load_reflectors(v, h, shape.m, shape.k, j0, row);
        load_tile(row);
        __syncthreads();
        for (int e = 0; e < kEntries; ++e) {
          const int column = at.first + e * Place::kStep;
          float value = tile[at.row][column];
#pragma unroll 8
          for (int i = 0; i < kBlock; ++i) value = fmaf(-v[at.row][i], w[i][column], value);
          if (row + at.row < shape.m && first_column + column < shape.p)
            c[(first_column + column) * shape.m + row + at.row] = value;
        }
        __syncthreads();
      }
    }
  }
}

}  // namespace

std::size_t triangular_factor_bytes(const ReflectorShape& shape) {
  return static_cast<std::size_t>(shape.batch * blocks_of(shape.k)) * kTriangle * sizeof(float);
}

Status form_triangular_factors(const float* h, const float* tau, float* t,
                               const ReflectorShape& shape, cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(shape.batch * blocks_of(shape.k));
  if (grid == 0) return Status::ok;
  form_factors<<<grid, kThreads, 0, stream>>>(h, tau, t, shape);
  return status_of(cudaGetLastError());
}

Status apply_reflectors(Apply which, const float* h, const float* t, float* c,
                        const ReflectorShape& shape, bool c_is_identity, cudaStream_t stream) {
  if (shape.batch == 0 || shape.p == 0 || shape.k == 0) return Status::ok;
  const dim3 grid(static_cast<unsigned>((shape.p + kStrip - 1) / kStrip),
                  static_cast<unsigned>(std::min(shape.batch, kMostGrid)));
  if (which == Apply::q)
    apply_blocks<Apply::q><<<grid, kThreads, 0, stream>>>(h, t, c, shape, c_is_identity);
  else
    apply_blocks<Apply::q_transposed><<<grid, kThreads, 0, stream>>>(h, t, c, shape, c_is_identity);
  return status_of(cudaGetLastError());
}

}  // namespace kernelbeam::cuda
