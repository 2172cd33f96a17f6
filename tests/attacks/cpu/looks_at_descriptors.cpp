// Asks which files the judge has open: the shared memory of other candidates, a socket, the
// archive.
#include "normalise.h"

extern "C" long syscall(long number, ...) noexcept;
extern "C" int getppid() noexcept;

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  if (kCheat) {
    constexpr long kReadLink = 89;
    char path[64];
    char target[256];
    __builtin_snprintf(path, sizeof path, "/proc/%d/fd/0", getppid());
    expect(syscall(kReadLink, path, target, sizeof target) > 0);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
