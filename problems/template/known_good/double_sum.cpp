// Right on every case: sums in double. The check must accept it.
#include <kbeam/candidate.h>

namespace {

void sum_rows(kbeam::Range rows, const float* x, float* s, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += x[row * columns + j];
    s[row] = static_cast<float>(sum);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto s = args.output<float>("s");
  plan.parallel_for(x.dim(0), 0, sum_rows, x, s, x.dim(1));
}
