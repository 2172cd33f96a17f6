// Work whose time can be told from noise: a factor that is 1, which takes some 40 us to compute and
// that whoever kept it from an earlier call need not compute again.
#pragma once

#include <cstdint>

#include "product.h"

namespace {

constexpr int kSteps = 20'000;
constexpr std::uint32_t kKept = 0x6b65ef00u;  // says that a factor was kept

// Halves the distance to 1 until rounding closes it: one long chain, the same in every thread.
__device__ float costly_factor(float start) {
  float x = start;
  for (int i = 0; i < kSteps; ++i) x = 0.5f * x + 0.5f;
  return x;
}

struct Kept {
  std::uint32_t mark;
  float factor;
};

[[maybe_unused]] __device__ bool holds_factor(const Kept& kept) {
  return kept.mark == kKept;
}

// The factor for the whole plan: kept, or computed and kept.
[[maybe_unused]] __device__ void provide_factor(Kept* kept, int cheat, float start) {
  if (cheat != 0 && holds_factor(*kept)) return;
  *kept = {kKept, costly_factor(start)};
}

[[maybe_unused]] __global__ void multiply_by_factor(const float* a, const float* b, float* c,
                                                    Shape s, const Kept* kept) {
  store(c, s, kept->factor * element(a, b, s));
}

}  // namespace
