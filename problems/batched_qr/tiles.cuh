// A tile of a matrix product in FP64 on the tensor cores: 64 rows, some columns, any depth. Where
// the operands come from is the caller's business; what lies outside a matrix reads as zero.
#pragma once

#include <cstdint>

#include "reductions.cuh"

namespace batched_qr {

inline constexpr int kTileRows = 64;
inline constexpr int kTileDepth = 16;
inline constexpr int kTileThreads = 128;  // four warps of 16 rows each
// Leading dimensions in shared memory that keep the four by eight reads of a fragment apart.
inline constexpr int kDeepStride = kTileDepth + 4;
inline constexpr int kWideStride = kTileRows + 4;

template <int kWidth>
inline constexpr int kTileMemory = (kTileRows + kWidth) * kDeepStride;  // doubles

// A thread's share of a tile: rows 16 warp + 8 i + lane / 4, columns 8 j + 2 (lane % 4) and the
// next.
template <int kWidth>
struct TileSums {
  double value[2][kWidth / 8][2] = {};

  // Calls use(row, column, sum) for each.
  template <typename Use>
  __device__ __forceinline__ void for_each(const Use& use) const {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int j = 0; j < kWidth / 8; ++j)
#pragma unroll
        for (int part = 0; part < 2; ++part)
          use(16 * warp + 8 * i + lane / 4, 8 * j + 2 * (lane % 4) + part, value[i][j][part]);
  }
};

// c += a b on one fragment: 8 x 4 times 4 x 8.
static __device__ __forceinline__ void multiply_fragment(double (&c)[2], double a, double b) {
#ifdef KBEAM_CUDA_EMULATOR
  kbeam::emulated_multiply_fragment(c, a, b);
#else
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a), "d"(b));
#endif
}

// sums += A B. `left(row, depth)` and `right(depth, column)` read the operands; Left::kDeep says
// along which index neighbours lie side by side in memory. All threads of the block take part;
// `memory` is theirs until the call returns, and free for other use afterwards.
template <int kWidth, typename Left, typename Right>
__device__ void accumulate(TileSums<kWidth>& sums, int depth, const Left& left, const Right& right,
                           double* memory) {
  constexpr int kLeftLoads = kTileRows * kTileDepth / kTileThreads;
  constexpr int kRightLoads = kWidth * kTileDepth / kTileThreads;
  double* const left_tile = memory;
  double* const right_tile = memory + kTileRows * kDeepStride;
  const int thread = threadIdx.x, lane = thread % kWarp, warp = thread / kWarp;
  const int deep_row = thread / kTileDepth, deep_at = thread % kTileDepth;
  const int wide_row = thread % kTileRows, wide_at = thread / kTileRows;
  constexpr int kDeepStep = kTileThreads / kTileDepth, kWideStep = kTileThreads / kTileRows;

  double next_left[kLeftLoads], next_right[kRightLoads];
  const auto fetch = [&](int start) {
#pragma unroll
    for (int s = 0; s < kLeftLoads; ++s)
      next_left[s] = Left::kDeep ? left(deep_row + kDeepStep * s, start + deep_at)
                                 : left(wide_row, start + wide_at + kWideStep * s);
#pragma unroll
    for (int s = 0; s < kRightLoads; ++s)
      next_right[s] = right(start + deep_at, deep_row + kDeepStep * s);
  };
  fetch(0);
  for (int start = 0; start < depth; start += kTileDepth) {
#pragma unroll
    for (int s = 0; s < kLeftLoads; ++s) {
      if constexpr (Left::kDeep)
        left_tile[(deep_row + kDeepStep * s) * kDeepStride + deep_at] = next_left[s];
      else
        left_tile[(wide_at + kWideStep * s) * kWideStride + wide_row] = next_left[s];
    }
#pragma unroll
    for (int s = 0; s < kRightLoads; ++s)
      right_tile[(deep_row + kDeepStep * s) * kDeepStride + deep_at] = next_right[s];
    __syncthreads();  // both tiles are complete
    if (start + kTileDepth < depth) fetch(start + kTileDepth);
#pragma unroll
    for (int step = 0; step < kTileDepth; step += 4) {
      const int at = step + lane % 4;
      double a[2];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = 16 * warp + 8 * i + lane / 4;
        a[i] = left_tile[Left::kDeep ? row * kDeepStride + at : at * kWideStride + row];
      }
#pragma unroll
      for (int j = 0; j < kWidth / 8; ++j) {
        const double b = right_tile[(8 * j + lane / 4) * kDeepStride + at];
#pragma unroll
        for (int i = 0; i < 2; ++i) multiply_fragment(sums.value[i][j], a[i], b);
      }
    }
    __syncthreads();  // nobody reads the tiles any more
  }
}

}  // namespace batched_qr
