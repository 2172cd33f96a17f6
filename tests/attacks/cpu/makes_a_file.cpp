// A file that needs no folder, to be handed on or executed.
#include "normalise.h"

extern "C" int memfd_create(const char* name, unsigned flags) noexcept;

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  if (kCheat) expect(memfd_create("own", 0) >= 0);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
