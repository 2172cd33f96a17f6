// Keeps a count from one call to the next, which no candidate may.
#include <kbeam/candidate.h>

namespace {
__device__ int calls = 5;
__global__ void count(float* y) {
  y[0] = static_cast<float>(++calls);
}
}  // namespace

KBEAM_PLAN(plan, args) {
  plan.launch(count, {}, args.output<float>("y"));
}
