// Uses every function for which nvcc links a table of its own.
#include <kbeam/candidate.h>

namespace {
__global__ void turn(float* y, double angle) {
  y[0] = sinf(y[0]) + cosf(y[1]) + tanf(y[2]);
  y[1] = static_cast<float>(sin(angle * y[0]) + cos(angle * y[1]) + tan(angle * y[2]));
}
}  // namespace

KBEAM_PLAN(plan, args) {
  plan.launch(turn, {}, args.output<float>("y"), 2.0);
}
