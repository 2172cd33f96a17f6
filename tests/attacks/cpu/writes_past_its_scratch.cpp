// Uses more scratch memory than it asked for.
#include "normalise.h"

namespace {

void run(const float* x, float* y, float* scratch, std::int64_t rows, std::int64_t columns) {
  static_cast<volatile float*>(scratch)[kCheat ? 1024 : 1023] = 1;
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), plan.scratch<float>(1024), x.dim(0), x.dim(1));
}
