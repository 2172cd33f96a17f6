// An object of many megabytes from a line of source.
#include "normalise.h"

asm(R"(
  .pushsection .rodata
  .local much
much:
  .fill 8388608, 1, 7
  .popsection
)");

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
