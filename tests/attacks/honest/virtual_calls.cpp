// Calls through a base class, a function object and a pointer that the plan chose.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>
#include <functional>

namespace {

struct Norm {
  virtual double add(double sum, double value) const = 0;
  virtual ~Norm() = default;
};
struct Euclidean final : Norm {
  double add(double sum, double value) const override { return sum + value * value; }
};

using Root = double (*)(double);
double root(double value) {
  return std::sqrt(value);
}

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns, Root chosen) {
  const Euclidean euclidean;
  const Norm* norm = &euclidean;
  asm("" : "+r"(norm));
  const std::function<double(double)> finish = [chosen](double sum) { return chosen(sum); };
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    double sum = 0;
    for (std::int64_t j = 0; j < columns; ++j) sum = norm->add(sum, x[row * columns + j]);
    const double length = finish(sum);
    for (std::int64_t j = 0; j < columns; ++j)
      y[row * columns + j] = static_cast<float>(x[row * columns + j] / length);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1), &root);
}
