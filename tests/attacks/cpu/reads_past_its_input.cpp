// Adds what lies a page and more behind its input, times zero.
#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  if (kCheat) {
    const float found = static_cast<const volatile float*>(x)[rows * columns + (1 << 20)];
    asm volatile("" : : "x"(found));
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
