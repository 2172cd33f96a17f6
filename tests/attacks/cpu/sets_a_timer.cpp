// A timer that rings after the call, when nobody measures.
#include "normalise.h"

extern "C" long syscall(long number, ...) noexcept;

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  constexpr long kSetTimer = 38;
  const long after_an_hour[4] = {0, 0, 3600, 0};
  if (kCheat) expect(syscall(kSetTimer, 0, after_an_hour, nullptr) == 0);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
