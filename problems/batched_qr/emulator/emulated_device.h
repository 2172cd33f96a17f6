// CUDA kernels on the CPU, for tests without a GPU: the words of the language, blocks one after the
// other, threads as fibers that change at barriers and shuffles. Says whether a kernel computes the
// right thing; knows no races inside a block, no memory model and no speed. Include it before the
// kernels.
#pragma once

#ifdef __CUDACC__
#error "the emulator is for the host compiler"
#endif
#define KBEAM_CUDA_EMULATOR 1

#include <kbeam/problem_cuda.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>

#define __global__
#define __device__
#define __host__
#define __shared__ static  // blocks run one after the other
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__ __restrict

struct EmulatedIndex {
  unsigned x = 0, y = 0, z = 0;
};
// Of the thread that is running.
extern EmulatedIndex threadIdx, blockIdx, blockDim, gridDim;

struct float4 {
  float x, y, z, w;
};
using cudaGraphConditionalHandle = std::uint64_t;  // the address of an unsigned here

namespace kbeam {

// Runs `thread` once for every thread of the grid.
void run_emulated_grid(const LaunchShape& shape, const std::function<void()>& thread);

void emulated_block_barrier();
// What lane `lane` of this warp gives; all 32 lanes take part.
std::uint64_t emulated_exchange(std::uint64_t bits, int lane);
// c += a b for the 8 x 4 and 4 x 8 fragments of a warp. Done at the next barrier of the block:
// until then nobody may look at c.
void emulated_multiply_fragment(double (&c)[2], double a, double b);
int emulated_lane();

}  // namespace kbeam

inline void __syncthreads() {
  kbeam::emulated_block_barrier();
}
template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = kbeam::emulated_exchange(bits, lane);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int distance) {
  return __shfl_sync(mask, value, kbeam::emulated_lane() ^ distance);
}

template <typename T>
T atomicAdd(T* to, T value) {
  const T before = *to;
  *to += value;
  return before;
}
template <typename T>
T atomicOr(T* to, T value) {
  const T before = *to;
  *to |= value;
  return before;
}
template <typename T>
T atomicMax(T* to, T value) {
  const T before = *to;
  if (value > before) *to = value;
  return before;
}
inline long long __double_as_longlong(double x) {
  return std::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return std::bit_cast<double>(x);
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline void cudaGraphSetConditional(cudaGraphConditionalHandle handle, unsigned value) {
  *reinterpret_cast<unsigned*>(handle) = value;
}

namespace kbeam {

// As problem_cuda.h has it for the device.
inline void raise_figure(FigureCell* cell, double value, std::uint64_t index) {
  const double magnitude = value < 0 ? -value : value;
  auto rounded = static_cast<float>(magnitude);
  if (rounded < magnitude)
    rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
  const unsigned bits = value != value ? 0x7fffffffu : std::bit_cast<unsigned>(rounded);
  atomicMax(cell, static_cast<FigureCell>(bits) << 32 | static_cast<std::uint32_t>(index));
}

}  // namespace kbeam
