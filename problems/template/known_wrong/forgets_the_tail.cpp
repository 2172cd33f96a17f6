// expect: wrong_value
// Forgets the columns after the last whole vector: right only where the row length is a multiple of
// eight.
#include <kbeam/candidate.h>

namespace {

void sum_rows(kbeam::Range rows, const float* x, float* s, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    float sum = 0;
    for (std::int64_t j = 0; j < columns / 8 * 8; ++j) sum += x[row * columns + j];
    s[row] = sum;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto s = args.output<float>("s");
  plan.parallel_for(x.dim(0), 0, sum_rows, x, s, x.dim(1));
}
