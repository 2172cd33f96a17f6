// Q' and Q, as H and tau define them, applied in FP64 to columns in memory: 64 reflectors at a time
// as I - V T V', with V read straight from H. One code for every shape.
#pragma once

#include <kbeam/problem_cuda.h>

#include <cstdint>

#include "tiles.cuh"

namespace batched_qr {

inline constexpr int kBlock = 64;  // reflectors of a block
static_assert(kBlock == kTileRows);

// The matrices in hand: a part of the batch, from matrix `first` on. Every kernel gets it.
struct Group {
  std::int64_t first;
  std::int64_t count;
  int m, n, k;
  int columns;  // of the working matrix X of each
  // Matrices whose state has all of `need` and none of `forbid` are worked on.
  int need, forbid;

  __host__ __device__ int blocks() const { return (k + kBlock - 1) / kBlock; }
  __device__ bool takes(int state) const { return (state & need) == need && (state & forbid) == 0; }
};

// Columns `first` to `first + count` of V, rows counted from `first`: ones on the diagonal, zeros
// above it, and what H holds below it.
template <bool kAlongRows>
struct Reflectors {
  static constexpr bool kDeep = !kAlongRows;  // the row of V is the tile's row, or its depth
  const float* h;
  int m, first, count;

  __device__ __forceinline__ double at(int row, int reflector) const {
    if (reflector >= count || first + row >= m || row < reflector) return 0;
    if (row == reflector) return 1;
    return h[static_cast<std::int64_t>(first + reflector) * m + first + row];
  }
  __device__ __forceinline__ double operator()(int tile_row, int depth) const {
    return kAlongRows ? at(tile_row, depth) : at(depth, tile_row);
  }
};
struct ReflectorsAsColumns {
  Reflectors<false> v;
  __device__ __forceinline__ double operator()(int depth, int column) const {
    return v.at(depth, column);
  }
};

// The same from row `row` of the block on, as the left operand of V W.
struct LowerReflectors {
  static constexpr bool kDeep = false;
  Reflectors<true> v;
  int row;
  __device__ __forceinline__ double operator()(int tile_row, int depth) const {
    return v.at(row + tile_row, depth);
  }
};

// T or its transpose, 64 x 64, column by column.
template <bool kTransposed>
struct Triangle {
  static constexpr bool kDeep = kTransposed;
  const double* t;
  __device__ __forceinline__ double operator()(int row, int depth) const {
    return kTransposed ? t[row * kBlock + depth] : t[depth * kBlock + row];
  }
};

// A matrix column by column, from some row and column on.
struct ColumnsOf {
  const double* x;
  std::int64_t stride;
  int rows, columns;
  __device__ __forceinline__ double operator()(int row, int column) const {
    return row < rows && column < columns ? x[column * stride + row] : 0;
  }
};

// T of every block of reflectors, from the Gram matrix of V: a block of threads each.
static __global__ void __launch_bounds__(kTileThreads)
    build_triangles(const float* h, const float* tau, const int* states, double* triangles,
                    Group group) {
  constexpr int kStride = kBlock + 1;
  __shared__ double memory[kBlock * kStride];
  static_assert(kTileMemory<kBlock> <= kBlock * kStride);
  const int blocks = group.blocks();
  const std::int64_t matrix = blockIdx.x / blocks;
  const int block = static_cast<int>(blockIdx.x % blocks);
  if (!group.takes(states[matrix])) return;
  const int first = block * kBlock;
  const int count = group.k - first < kBlock ? group.k - first : kBlock;
  const Reflectors<false> v{h + matrix * group.m * group.n, group.m, first, count};
  TileSums<kBlock> sums;
  accumulate(sums, group.m - first, v, ReflectorsAsColumns{v}, memory);
  double* const t = memory;
  sums.for_each([&](int row, int column, double sum) { t[column * kStride + row] = sum; });
  __syncthreads();  // the Gram matrix is complete

  // Column i of T from the columns before it and column i of the Gram matrix, which it replaces.
  const int row = threadIdx.x;
  for (int i = 0; i < kBlock; ++i) {
    const double scale = i < count ? tau[matrix * group.k + first + i] : 0;
    double entry = 0;
    if (row < i) {
      for (int q = row; q < i; ++q) entry += t[q * kStride + row] * t[i * kStride + q];
      entry *= -scale;
    }
    __syncthreads();  // column i of the Gram matrix has been read
    if (row < kBlock) t[i * kStride + row] = row < i ? entry : row == i ? scale : 0;
    __syncthreads();  // column i of T is complete
  }
  double* const to = triangles + (matrix * blocks + block) * kBlock * kBlock;
  for (int e = threadIdx.x; e < kBlock * kBlock; e += kTileThreads)
    to[e] = t[e / kBlock * kStride + e % kBlock];
}

// W = T' V' X (or T V' X for Q), 64 rows of W for one block of reflectors, columns from
// `first_column` on.
template <int kWidth, bool kTransposed>
static __global__ void __launch_bounds__(kTileThreads)
    project_columns(const float* h, const double* triangles, const double* x, const int* states,
                    double* w, Group group, int block, int first_column) {
  __shared__ double memory[kTileMemory<kWidth>];
  const int tiles = (group.columns - first_column + kWidth - 1) / kWidth;
  const std::int64_t matrix = blockIdx.x / tiles;
  if (!group.takes(states[matrix])) return;
  const int column = first_column + static_cast<int>(blockIdx.x % tiles) * kWidth;
  const int columns = group.columns - column;
  const int first = block * kBlock;
  const int count = group.k - first < kBlock ? group.k - first : kBlock;
  const Reflectors<false> v{h + matrix * group.m * group.n, group.m, first, count};
  const double* const x_at = x + (matrix * group.columns + column) * group.m + first;
  double* const w_at = w + (matrix * group.columns + column) * kBlock;
  const auto keep = [&](int row, int j, double sum) {
    if (j < columns) w_at[j * kBlock + row] = sum;
  };
  TileSums<kWidth> plain;
  accumulate(plain, group.m - first, v, ColumnsOf{x_at, group.m, group.m - first, columns}, memory);
  plain.for_each(keep);
  __syncthreads();  // V' X of these columns is in memory, for this block of threads to read

  const double* const t = triangles + (matrix * group.blocks() + block) * kBlock * kBlock;
  TileSums<kWidth> turned;
  accumulate(turned, kBlock, Triangle<kTransposed>{t}, ColumnsOf{w_at, kBlock, kBlock, columns},
             memory);
  turned.for_each(keep);
}

// X -= V W for one block of reflectors, a tile each.
template <int kWidth>
static __global__ void __launch_bounds__(kTileThreads)
    subtract_reflections(const float* h, const double* w, const int* states, double* x, Group group,
                         int block, int first_column) {
  __shared__ double memory[kTileMemory<kWidth>];
  const int first = block * kBlock;
  const int column_tiles = (group.columns - first_column + kWidth - 1) / kWidth;
  const int row_tiles = (group.m - first + kTileRows - 1) / kTileRows;
  const std::int64_t matrix = blockIdx.x / (column_tiles * row_tiles);
  if (!group.takes(states[matrix])) return;
  const int tile = static_cast<int>(blockIdx.x % (column_tiles * row_tiles));
  const int column = first_column + tile / row_tiles * kWidth;
  const int row = tile % row_tiles * kTileRows;
  const int columns = group.columns - column;
  const int count = group.k - first < kBlock ? group.k - first : kBlock;
  const LowerReflectors v{{h + matrix * group.m * group.n, group.m, first, count}, row};
  TileSums<kWidth> sums;
  accumulate(sums, count, v,
             ColumnsOf{w + (matrix * group.columns + column) * kBlock, kBlock, kBlock, columns},
             memory);
  double* const x_at = x + (matrix * group.columns + column) * group.m + first + row;
  const int rows = group.m - first - row;
  sums.for_each([&](int i, int j, double sum) {
    if (i < rows && j < columns) x_at[static_cast<std::int64_t>(j) * group.m + i] -= sum;
  });
}

inline std::int64_t tiles_of(std::int64_t length, std::int64_t tile) {
  return (length + tile - 1) / tile;
}

// `memory` holds h, tau, states, triangles (blocks x 64 x 64 a matrix), x (m x columns) and w (64 x
// columns).
template <int kWidth, bool kTransposed, typename Plan, typename Memory>
void apply_block(Plan& plan, const Memory& memory, const Group& group, int block,
                 int first_column) {
  const std::int64_t tiles = tiles_of(group.columns - first_column, kWidth);
  plan.launch(project_columns<kWidth, kTransposed>,
              {.grid = group.count * tiles, .block = kTileThreads}, memory.h, memory.triangles,
              memory.x, memory.states, memory.w, group, block, first_column);
  plan.launch(subtract_reflections<kWidth>,
              {.grid = group.count * tiles * tiles_of(group.m - block * kBlock, kTileRows),
               .block = kTileThreads},
              memory.h, memory.w, memory.states, memory.x, group, block, first_column);
}

template <typename Plan, typename Memory>
void build_all_triangles(Plan& plan, const Memory& memory, const Group& group) {
  plan.launch(build_triangles, {.grid = group.count * group.blocks(), .block = kTileThreads},
              memory.h, memory.tau, memory.states, memory.triangles, group);
}

// X := Q' X.
template <int kWidth, typename Plan, typename Memory>
void apply_q_transposed(Plan& plan, const Memory& memory, const Group& group) {
  for (int block = 0; block < group.blocks(); ++block)
    apply_block<kWidth, true>(plan, memory, group, block, 0);
}

// Columns `identity` and on of X, an identity of m columns, become Q. Before block b is applied,
// identity columns before row 64 b still have zeros in all rows that it touches.
template <typename Plan, typename Memory>
void form_q(Plan& plan, const Memory& memory, const Group& group, int identity) {
  for (int block = group.blocks() - 1; block >= 0; --block)
    apply_block<kTileRows, false>(plan, memory, group, block, identity + block * kBlock);
}

}  // namespace batched_qr
