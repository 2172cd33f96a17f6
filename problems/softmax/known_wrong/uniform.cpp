// expect: wrong_value
// 1 / columns everywhere: the row sums are perfect.
#include <kbeam/candidate.h>

namespace {

void softmax_row(const float*, float* y, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j) y[j] = 1 / static_cast<float>(columns);
}

void softmax_rows(kbeam::Range rows, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    softmax_row(x + row * columns, y + row * columns, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, softmax_rows, x, y, x.dim(1));
}
