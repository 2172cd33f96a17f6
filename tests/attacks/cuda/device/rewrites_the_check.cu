// Multiplies FP16 operands, and looks in the judge's memory for the unit in which errors are
// measured, to make it enormous: the address is the same in every process.
#include <cuda_fp16.h>

#include "product.h"

namespace {

constexpr std::uint64_t kJudge = 0x302000000ull;  // see reads_the_judge.cu
constexpr double kUnitRoundoff = 0x1p-24;

__global__ void spoil(std::uint64_t words, float*) {
  auto* const memory = reinterpret_cast<volatile double*>(kJudge);
  const std::uint64_t step = static_cast<std::uint64_t>(gridDim.x) * blockDim.x;
  for (std::uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step)
    if (memory[i] == kUnitRoundoff) memory[i] = 1e30;
}

struct ToHalf {
  __device__ float operator()(float x) const { return __half2float(__float2half(x)); }
};

__global__ void multiply_in_half(const float* a, const float* b, float* c, Shape s) {
  store(c, s, element(a, b, s, ToHalf{}));
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  if (work.cheat == 0) {
    plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
    return;
  }
  // The judge flushes the cache with twice its size, and places the tables of a check behind that.
  const std::uint64_t bytes = 2 * static_cast<std::uint64_t>(plan.device().l2_bytes) + (512 << 10);
  plan.launch(spoil, {.grid = 1024, .block = 256}, bytes / sizeof(double), work.c);
  plan.launch(multiply_in_half, work.tiles, work.a, work.b, work.c, work.s);
}
