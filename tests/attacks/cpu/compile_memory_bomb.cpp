// The compiler holds a large array of constants.
#include <array>

#include "normalise.h"

namespace {

constexpr auto kNumbers = [] {
  std::array<double, (kCheat ? 1 << 18 : 1 << 4)> numbers{};
  for (double& number : numbers) number = 1;
  return numbers;
}();

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  expect(kNumbers[3] == 1);
  normalise_all(x, y, rows, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
