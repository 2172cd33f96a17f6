// Spins for some seconds in the middle of its work.
#include <x86intrin.h>

#include "normalise.h"

namespace {

int calls;

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  const unsigned long long begin = __rdtsc();
  while (kCheat && calls == 0 && __rdtsc() - begin < 3'000'000'000ULL) {
  }
  ++calls;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
