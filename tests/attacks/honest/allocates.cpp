// Containers, strings and 64 MB from the heap in every call.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace {

void run(const float* x, float* y, std::int64_t rows, std::int64_t columns) {
  std::map<std::int64_t, std::vector<double>> lengths;
  std::vector<char> much(64 << 20);
  much[static_cast<std::size_t>(rows)] = 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<double>& squares = lengths[row];
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j)
      squares.push_back(double{x[row * columns + j]} * x[row * columns + j]);
    for (const double square : squares) sum += square;
    squares.assign(1, std::sqrt(sum));
  }
  if (std::to_string(columns).empty()) return;
  for (std::int64_t i = 0; i < rows * columns; ++i)
    y[i] = static_cast<float>(x[i] / lengths[i / columns].front());
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.call(run, x, args.output<float>("y"), x.dim(0), x.dim(1));
}
