// A walk through an input whose steps wait for memory: some 100 us when the input is in no cache,
// half of that when it is in L2. What it finds changes nothing.
#pragma once

#include <cstdint>

#include "product.h"

namespace {

constexpr int kSteps = 300;

template <typename Load>
__device__ float wander(const float* from, int elements, const Load& load) {
  std::uint32_t at = 1;
  for (int i = 0; i < kSteps; ++i) {
    const float value = load(from + at % elements);
    at = at * 1664525u + 1013904223u + (value == 12345.678f ? 1 : 0);
  }
  return at == 0 ? 0.5f : 1.0f;
}

struct LoadPlainly {
  __device__ float operator()(const float* from) const {
    float value;
    asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(value) : "l"(from));
    return value;
  }
};

__global__ void walk(const float* a, int elements, float* factor) {
  *factor = wander(a, elements, LoadPlainly{});
}

__global__ void multiply_after(const float* a, const float* b, float* c, Shape s,
                               const float* factor) {
  store(c, s, *factor * element(a, b, s));
}

}  // namespace
