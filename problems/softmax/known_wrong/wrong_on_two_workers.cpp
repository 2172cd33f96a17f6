// expect: wrong_value
// needs: sandbox
// Right on one worker; with more, every worker but the first leaves zeros.
#include <kbeam/candidate.h>

#include <cmath>
#include <limits>

namespace {

void softmax_rows(kbeam::Range rows, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* from = x + row * columns;
    float* to = y + row * columns;
    double most = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < columns; ++j) most = from[j] > most ? from[j] : most;
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum += std::exp(from[j] - most);
    for (std::int64_t j = 0; j < columns; ++j)
      to[j] = rows.worker == 0 ? static_cast<float>(std::exp(from[j] - most) / sum) : 0;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, softmax_rows, x, y, x.dim(1));
}
