// Sums over a warp and over a block, the same on every run: the order of addition is fixed.
#pragma once

#include <cstdint>

namespace batched_qr {

inline constexpr int kWarp = 32;

static __device__ __forceinline__ double warp_sum(double x) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

// Every thread of the block gets the sum. `shared` holds a double for each warp.
static __device__ double block_sum(double x, double* shared) {
  x = warp_sum(x);
  __syncthreads();  // the readers of the sum before are done
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = x;
  __syncthreads();
  double total = 0;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) total += shared[warp];
  return total;
}

}  // namespace batched_qr
