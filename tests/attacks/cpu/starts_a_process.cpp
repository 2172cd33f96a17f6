// Starts a process of its own; a bomb starts many.
#include "normalise.h"

extern "C" int fork() noexcept;
extern "C" [[noreturn]] void _exit(int code);

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  if (kCheat) {
    const int child = fork();
    expect(child >= 0);
    if (child == 0) _exit(0);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
