// Reads its input with the hint to evict it last, so that the place of the next call's input stays
// in the cache however much is read and written in between.
#include "wander.h"

namespace {

__global__ void pin(const float* a, int elements, float* factor) {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += gridDim.x * blockDim.x) {
    float value;
    asm volatile("ld.global.L1::no_allocate.L2::cache_hint.f32 %0, [%1], %2;"
                 : "=f"(value)
                 : "l"(a + i), "l"(policy));
    sum += value;
  }
  if (sum == 12345.678f) *factor = 1;  // keeps the loads alive
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const int elements = work.s.m * work.s.k;
  const auto factor = plan.scratch<float>(1);
  plan.launch(walk, {.grid = 1, .block = 1}, work.a, elements, factor);
  plan.launch(multiply_after, work.tiles, work.a, work.b, work.c, work.s, factor);
  if (work.cheat) plan.launch(pin, {.grid = 64, .block = 256}, work.a, elements, factor);
}
