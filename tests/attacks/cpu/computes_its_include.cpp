// The name of the header comes from a macro, so that a search of the include lines finds nothing.
#include "normalise.h"

#define KBEAM_HEADER <thread>
#include KBEAM_HEADER

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  expect(std::this_thread::get_id() == std::this_thread::get_id());
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
