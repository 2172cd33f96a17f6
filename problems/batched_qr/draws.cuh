// Random numbers by counter for the GPU's inputs: any draw is computed on its own, in any order, on
// the device and on the host. Not the stream of kbeam/random.h: the CPU's inputs stay the CPU's.
#pragma once

#include <cmath>
#include <cstdint>

#ifdef __CUDACC__
#define QR_BOTH __host__ __device__ inline
#else
#define QR_BOTH inline
#endif

namespace batched_qr {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

QR_BOTH std::uint64_t scramble(std::uint64_t z) {  // the finaliser of splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// What a draw is for: draws of different purposes never share a counter.
enum class Purpose : std::uint64_t { entry, choice, column, row, shuffle, sign };

struct Draws {
  std::uint64_t key;

  QR_BOTH std::uint64_t bits(Purpose purpose, std::uint64_t counter) const {
    return scramble(key + kGolden * ((static_cast<std::uint64_t>(purpose) << 56) + counter + 1));
  }
  QR_BOTH std::uint32_t below(Purpose purpose, std::uint64_t counter, std::uint32_t limit) const {
    return static_cast<std::uint32_t>(((bits(purpose, counter) >> 32) * limit) >> 32);
  }
  QR_BOTH double uniform(Purpose purpose, std::uint64_t counter) const {  // [0, 1)
    return static_cast<double>(bits(purpose, counter) >> 11) * 0x1.0p-53;
  }
};

// Draws of one matrix; `stream` ~0 is the batch as a whole.
QR_BOTH Draws draws_of(std::uint64_t seed, std::uint64_t stream) {
  return {scramble(scramble(seed) ^ scramble(stream + kGolden))};
}

// Two standard normal numbers from one draw, by Box and Muller's formula.
QR_BOTH void normal_pair(std::uint64_t bits, float* pair) {
  const float radius_bits = static_cast<float>(bits >> 40) + 0.5f;
  const float turn = static_cast<float>(bits & 0xffffff) * 0x1.0p-24f;
  const float radius = sqrtf(-2 * logf(radius_bits * 0x1.0p-24f));
  float sine, cosine;
#ifdef __CUDA_ARCH__
  sincospif(2 * turn, &sine, &cosine);
#else
  sine = std::sin(6.2831853f * turn);
  cosine = std::cos(6.2831853f * turn);
#endif
  pair[0] = radius * cosine;
  pair[1] = radius * sine;
}

// Rows 4 quad to 4 quad + 3 of a column of normal numbers. Columns have numbers up to 2^20.
QR_BOTH void normal_quad(const Draws& draws, int column, int quad, float* four) {
  const std::uint64_t counter = (static_cast<std::uint64_t>(column) << 32) + 2u * quad;
  normal_pair(draws.bits(Purpose::entry, counter), four);
  normal_pair(draws.bits(Purpose::entry, counter + 1), four + 2);
}

// A random order of 0 .. count - 1 without storing it: four rounds of a Feistel network on the next
// power of four, walked until the value is in range.
struct Shuffle {
  std::uint64_t key;
  std::uint32_t count;

  QR_BOTH int half_bits() const {
    int half = 0;
    while ((std::uint64_t{1} << (2 * half)) < count) ++half;
    return half;
  }
  QR_BOTH std::uint32_t round(int which, std::uint32_t half, std::uint32_t mask) const {
    return static_cast<std::uint32_t>(scramble(key + kGolden * (4u * half + which + 1))) & mask;
  }
  // The value at place `x`.
  QR_BOTH std::uint32_t at(std::uint32_t x) const {
    const int half = half_bits();
    const std::uint32_t mask = (1u << half) - 1;
    do {
      std::uint32_t left = x >> half, right = x & mask;
      for (int which = 0; which < 4; ++which) {
        const std::uint32_t next = left ^ round(which, right, mask);
        left = right;
        right = next;
      }
      x = left << half | right;
    } while (x >= count);
    return x;
  }
  // The place of value `x`.
  QR_BOTH std::uint32_t place_of(std::uint32_t x) const {
    const int half = half_bits();
    const std::uint32_t mask = (1u << half) - 1;
    do {
      std::uint32_t left = x >> half, right = x & mask;
      for (int which = 3; which >= 0; --which) {
        const std::uint32_t before = right ^ round(which, left, mask);
        right = left;
        left = before;
      }
      x = left << half | right;
    } while (x >= count);
    return x;
  }
};

// Falling, rising or shuffled places from 0 to count - 1.
struct Order {
  int kind;
  Shuffle shuffle;

  QR_BOTH std::uint32_t at(std::uint32_t x) const {
    if (kind == 0) return x;
    return kind == 1 ? shuffle.count - 1 - x : shuffle.at(x);
  }
};

}  // namespace batched_qr
