// Makes a table in scratch memory in the first call and counts on finding it there again.
#include "normalise.h"

namespace {

int calls;

void make_table(double* table) {
  if (!kCheat || calls++ == 0) table[0] = 1;
}

void run(kbeam::Range range, const float* x, float* y, const double* table, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const double length = length_of(x + row * columns, columns) * table[0];
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto table = plan.scratch<double>(64);
  plan.call(make_table, table);
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), table, x.dim(1));
}
