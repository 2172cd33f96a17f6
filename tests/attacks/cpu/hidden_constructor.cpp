// A constructor in a section of another name: only its type says what it is.
#include "normalise.h"

asm(R"(
  .pushsection .ordinary,"aw",@init_array
  .quad 0
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
