// Gives the pages of the output back to the kernel before it writes them: a cheap way to be rid of
// what lies there.
#include "normalise.h"

extern "C" int madvise(void* from, std::size_t bytes, int advice) noexcept;

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  const auto begin = reinterpret_cast<std::uintptr_t>(y) & ~std::uintptr_t{4095};
  constexpr int kRemove = 9;
  if (kCheat) expect(madvise(reinterpret_cast<void*>(begin), 4096, kRemove) == 0);
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
