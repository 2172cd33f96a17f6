// Written with goto, and with a table of addresses of labels.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  std::int64_t row = range.begin;
  std::int64_t j = 0;
  double sum = 0;
  void* const steps[] = {&&add, &&divide};
next:
  if (row == range.end) return;
  sum = 0;
  j = 0;
  goto* steps[0];
add:
  if (j < columns) {
    sum += double{x[row * columns + j]} * x[row * columns + j];
    ++j;
    goto add;
  }
  sum = std::sqrt(sum);
  j = 0;
  goto* steps[1];
divide:
  if (j < columns) {
    y[row * columns + j] = static_cast<float>(x[row * columns + j] / sum);
    ++j;
    goto divide;
  }
  ++row;
  goto next;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
