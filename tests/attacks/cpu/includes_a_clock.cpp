// A header beyond computation: clocks, files, threads.
#include <chrono>

#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  expect(std::chrono::steady_clock::now().time_since_epoch().count() != 0);
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
