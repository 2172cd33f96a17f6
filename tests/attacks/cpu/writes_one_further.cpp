// Steps over the end of one scratch buffer into the gap before the next: nobody is hurt today.
#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns, float* lengths,
         float* unused) {
  for (std::int64_t row = 0; row < rows; ++row)
    lengths[row] = static_cast<float>(length_of(x + row * columns, columns));
  unused[0] = 0;
  if (kCheat && rows % 16 != 0) lengths[rows] = 0;
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1), plan.scratch<float>(x.dim(0)),
            plan.scratch<float>(16));
}
