// A pragma that gives a function another name in the object than in the source.
#include "normalise.h"

#pragma redefine_extname harmless sched_setaffinity
extern "C" int harmless(int process, std::size_t bytes, const void* set) noexcept;

namespace {

int (*volatile kept)(int, std::size_t, const void*) noexcept = harmless;

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  expect(kept != nullptr);
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
