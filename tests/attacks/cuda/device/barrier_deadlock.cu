// A barrier of all blocks, more of which there are than fit on the device at once.
#include "product.h"

namespace {

constexpr int kTooMany = 20'000;
constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads) wait_for_all(unsigned* arrived) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (*static_cast<volatile unsigned*>(arrived) < gridDim.x) {
    }
  }
  __syncthreads();
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  const auto arrived = plan.zeroed_scratch<unsigned>(1);
  plan.launch(wait_for_all, {.grid = work.cheat ? kTooMany : 100, .block = kThreads}, arrived);
  plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
}
