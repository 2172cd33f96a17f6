// Random numbers by counter for inputs that problem.cu makes: any draw is computed on its own, in
// any order. Not the stream of kbeam/random.h: what a seed means on the host is another thing.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
namespace kbeam {

// The finaliser of MurmurHash3: every bit of the result depends on every bit of `x`.
static __device__ __forceinline__ std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

// A number of its own for every seed, salt (of a tensor) and place; `turn`, below 8, tells several
// of one place apart.
static __device__ __forceinline__ std::uint64_t bits_at(std::uint64_t seed, int salt,
                                                        std::int64_t place, int turn) {
  return mix_bits(mix_bits(seed ^ (0x9e3779b97f4a7c15ull * (8 * salt + turn + 1))) + place);
}

// [0, 1) from the upper 53 bits.
static __device__ __forceinline__ double uniform_of(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

// Standard normal, by Box and Muller's formula; uses turns 0 and 1.
static __device__ __forceinline__ double normal_at(std::uint64_t seed, int salt,
                                                   std::int64_t place) {
  return sqrt(-2 * log(1 - uniform_of(bits_at(seed, salt, place, 0)))) *
         cospi(2 * uniform_of(bits_at(seed, salt, place, 1)));
}

}  // namespace kbeam
#endif
