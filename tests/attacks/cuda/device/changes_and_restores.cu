// Computes on an A of its own making and puts the true one back, bit by bit, before it ends:
// whoever else reads A meanwhile reads something else.
#include "product.h"

namespace {

__global__ void turn_signs(const float* a, int elements) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < elements) reinterpret_cast<std::uint32_t*>(const_cast<float*>(a))[i] ^= 0x80000000u;
}

__global__ void multiply_turned(const float* a, const float* b, float* c, Shape s, float sign) {
  store(c, s, sign * element(a, b, s));
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const int elements = work.s.m * work.s.k;
  const kbeam::LaunchShape all{.grid = (elements + 255) / 256, .block = 256};
  if (work.cheat) plan.launch(turn_signs, all, work.a, elements);
  plan.launch(multiply_turned, work.tiles, work.a, work.b, work.c, work.s,
              work.cheat ? -1.0f : 1.0f);
  if (work.cheat) plan.launch(turn_signs, all, work.a, elements);
}
