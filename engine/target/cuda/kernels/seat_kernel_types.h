// What the trusted kernels and their host side agree on.
#pragma once

#include <stdint.h>

#include <cmath>
#include <cstring>

#ifdef __CUDACC__
#define KBEAM_BOTH_SIDES __host__ __device__
#else
#define KBEAM_BOTH_SIDES
#endif

namespace kbeam {

// kbeam_element_type by another name: this header is compiled for the device too.
enum PoisonType { kPoisonF32 = 0, kPoisonF64 = 1, kPoisonI32 = 2, kPoisonI64 = 3 };

// How many were found and the smallest place; {0, kNothingFound} before a search.
struct SeatFinding {
  unsigned long long count;
  unsigned long long first;
};
constexpr unsigned long long kNothingFound = ~0ull;

constexpr int kProbeBlocks = 1024;
constexpr int kProbeThreads = 256;
constexpr int kProbeRounds = 32;

// What one thread of the probe adds: exact on both sides, since IEEE FMA is.
KBEAM_BOTH_SIDES inline uint64_t probe_term(uint32_t thread) {
  uint32_t state = thread * 2654435761u + 12345u;
  double chain = 1.0 + thread * 0x1p-20;
  for (int round = 0; round < kProbeRounds; ++round) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
#ifdef __CUDA_ARCH__
    chain = __fma_rn(chain, 0.875, (state & 0xffffu) * 0x1p-18);
#else
    chain = std::fma(chain, 0.875, (state & 0xffffu) * 0x1p-18);
#endif
  }
  uint64_t bits = 0;
  memcpy(&bits, &chain, sizeof(bits));
  return bits ^ state;
}

}  // namespace kbeam
