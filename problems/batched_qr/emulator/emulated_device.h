// CUDA kernels on the CPU, for tests without a GPU: the words of the language, clusters one after
// the other, threads as fibers that change at barriers and shuffles. What is asynchronous arrives
// as late as a kernel allows or at once, by turns that only look like chance. Says whether a kernel
// computes the right thing; knows no memory model and no speed. Include it before the kernels.
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

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) {
  return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
  return {x, y, z, w};
}
inline double2 make_double2(double x, double y) {
  return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
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

// Of the lanes in `mask` alone.
void emulated_warp_barrier(unsigned mask);
// `threads` of the block at one of its numbered barriers.
void emulated_named_barrier(int name, int threads);
void emulated_cluster_barrier();
int emulated_cluster_rank();
int emulated_cluster_size();

// Up to 96 bytes of every lane, until its exchange after the next; all 32 lanes take part.
void emulated_show(const void* own, std::size_t bytes);
const void* emulated_shown_by(int lane);

// The block's dynamic shared memory, and a place in it as an offset; what lies at the same offset
// in block `rank` of the cluster.
char* emulated_shared_memory();
std::uint32_t emulated_shared_offset(const void* place);
char* emulated_place_in(const void* place, int rank);

// An mbarrier of 64 bits.
void emulated_barrier_init(std::uint64_t* barrier, int arrivals);
void emulated_barrier_arrive(std::uint64_t* barrier, int bytes_to_come);
bool emulated_barrier_done(const std::uint64_t* barrier, std::uint32_t parity);
void emulated_barrier_wait(const std::uint64_t* barrier, std::uint32_t parity);
// Lets others run, once; the thread has nothing to do meanwhile.
void emulated_poll();

// The device takes no vector, matrix row or piece of a copy from or to another place.
void emulated_require_aligned(const void* place, int bytes);

// A write to shared memory that the barrier counts; `from` is read when it is done.
void emulated_copy_async(void* to, const void* from, int bytes, std::uint64_t* barrier);
// The same of up to 16 bytes that are read now.
void emulated_store_async(void* to, const void* value, int bytes, std::uint64_t* barrier);
// Copies that this thread waits for: of cp.async's groups all but the last `left`, or its bulk
// stores.
void emulated_copy_later(void* to, const void* from, int bytes);
void emulated_commit_copies();
void emulated_wait_copies(int left);
void emulated_store_later(void* to, const void* from, int bytes);
void emulated_wait_stores();

// c (+)= a b of a warpgroup, 64 x 128 x 16 halves, done when it waits. a: fragments, or an operand
// in shared memory if null.
struct WideProduct {
  float (*c)[4];
  std::uint32_t fragments[4];
  bool has_fragments, b_is_turned, adds;
  std::uint64_t a, b;
};
void emulated_multiply_wide(const WideProduct& product);
void emulated_wait_wide();

float emulated_from_half(std::uint16_t half);
std::uint16_t emulated_to_half(float x);

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

inline void __syncwarp(unsigned mask = ~0u) {
  kbeam::emulated_warp_barrier(mask);
}
inline unsigned __ballot_sync(unsigned, bool mine) {
  const std::uint64_t own = mine;
  kbeam::emulated_show(&own, sizeof own);
  unsigned all = 0;
  for (int lane = 0; lane < 32; ++lane) {
    std::uint64_t one = 0;
    std::memcpy(&one, kbeam::emulated_shown_by(lane), sizeof one);
    all |= static_cast<unsigned>(one) << lane;
  }
  return all;
}
inline bool __all_sync(unsigned mask, bool mine) {
  return __ballot_sync(mask, mine) == ~0u;
}
inline bool __any_sync(unsigned mask, bool mine) {
  return __ballot_sync(mask, mine) != 0;
}
template <typename T>
T __ldg(const T* from) {
  return *from;
}
template <typename T>
T __ldcg(const T* from) {
  return *from;
}
template <typename T>
T __ldcs(const T* from) {
  return *from;
}
template <typename T>
void __stcs(T* to, T value) {
  *to = value;
}
inline void __nanosleep(unsigned) {}
inline void __threadfence() {}
inline int __ffs(int x) {
  return __builtin_ffs(x);
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
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}
inline float __uint_as_float(unsigned x) {
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
