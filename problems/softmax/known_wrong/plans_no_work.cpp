// expect: not_finite
// A plan with a step and no work items: nothing is ever written, and what lies in the output is a
// NaN.
#include <kbeam/candidate.h>

namespace {

void softmax_rows(kbeam::Range, const float*, float*) {}

}  // namespace

KBEAM_PLAN(plan, args) {
  plan.parallel_for(0, 0, softmax_rows, args.input<float>("x"), args.output<float>("y"));
}
