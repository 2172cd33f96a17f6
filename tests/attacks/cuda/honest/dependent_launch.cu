// A chain of programmatic dependent launches: each kernel is there early and waits for its input.
#include "product.h"

namespace {

__global__ void copy_operand(const float* from, float* to, int count) {
  asm volatile("griddepcontrol.launch_dependents;");
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[i] = from[i];
}

__global__ void multiply_copies(const float* a, const float* b, float* c, Shape s) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
  store(c, s, element(a, b, s));
}

__global__ void negate_twice(float* c, int count) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    const float negative = -c[i];
    c[i] = -negative;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  Work work = work_of(args);
  const int of_a = work.s.m * work.s.k, of_c = work.s.m * work.s.n;
  const auto copy = plan.scratch<float>(of_a);
  plan.launch(copy_operand, {.grid = 32, .block = 256}, work.a, copy, of_a);
  work.tiles.overlap_previous = true;
  plan.launch(multiply_copies, work.tiles, copy, work.b, work.c, work.s);
  plan.launch(negate_twice, {.grid = 32, .block = 256, .overlap_previous = true}, work.c, of_c);
}
