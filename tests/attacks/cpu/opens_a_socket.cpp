// A way out to the network.
#include "normalise.h"

extern "C" int socket(int domain, int type, int protocol) noexcept;

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  normalise_all(x, y, rows, columns);
  if (kCheat) expect(socket(1, 1, 0) >= 0);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
