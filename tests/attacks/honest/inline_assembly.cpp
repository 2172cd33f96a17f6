// A table and a square root in assembly.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

asm(R"(
  .pushsection .rodata
  .local kbeam_one
  .balign 8
kbeam_one: .double 1.0
  .popsection
)");
extern "C" __attribute__((visibility("hidden"))) const double kbeam_one;

namespace {

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      sum += kbeam_one * x[row * columns + j] * x[row * columns + j];
    double length = sum;
#if defined(__x86_64__)
    asm("sqrtsd %1, %0" : "=x"(length) : "x"(sum));
#else
    length = std::sqrt(sum);
#endif
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
