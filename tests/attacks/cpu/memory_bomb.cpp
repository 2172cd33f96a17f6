// Asks for more address space than a candidate may have.
#include <new>

#include "normalise.h"

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  void* const much = ::operator new (std::size_t{kCheat ? 8 : 0} << 30 | 4096);
  asm volatile("" : : "r"(much) : "memory");
  ::operator delete(much);
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
