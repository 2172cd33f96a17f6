// Rows divided by their length: inputs, the FP64 oracle and the cost. The corpus also builds
// mutants of this file, in which one line is changed (attacks.toml): each must let an attack
// through.
#include <kbeam/problem.h>
#include <kbeam/random.h>

#include <cmath>
#include <limits>
#include <string>

namespace {

using kbeam::CaseView;
using kbeam::CheckFailure;
using kbeam::CheckRequest;
using kbeam::CheckSink;
using kbeam::Random;
using kbeam::TensorView;

constexpr double kUnitRoundoff = 0x1p-24;
constexpr double kLimit = 16;

double length_of(const float* values, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t j = 0; j < columns; ++j) sum += double{values[j]} * values[j];
  return std::sqrt(sum);
}

class NormaliseRows final : public kbeam::ProblemCode {
 public:
  void generate(const CaseView& the_case, std::uint64_t seed,
                std::span<const TensorView> inputs) override {
    const TensorView& x = find_tensor(inputs, "x");
    const std::int64_t columns = x.dim[1];
    const std::string_view family = the_case.family();
    Random random(seed);
    for (std::int64_t i = 0; i < x.elements; ++i) {
      float value = static_cast<float>(random.normal());
      if (family == "noise_columns" && i % columns % 2 == 1) value *= 0x1p-20f;
      if (family == "zero_rows" && i / columns % 3 == 2) value = 0;
      x.f32()[i] = value;
    }
    if (family == "one_nan")
      x.f32()[random.below(static_cast<std::uint64_t>(x.elements))] =
          std::numeric_limits<float>::quiet_NaN();
  }

  // Rows in another order, each with a sign and a power of two of its own: exact, and within the
  // family.
  void freshen(const CaseView&, std::uint64_t key, std::span<const TensorView> base,
               std::span<const TensorView> fresh) override {
    const TensorView& from = find_tensor(base, "x");
    const TensorView& to = find_tensor(fresh, "x");
    const std::int64_t rows = from.dim[0];
    const std::int64_t columns = from.dim[1];
    Random random(key);
    const auto first = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows)));
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* source = from.f32() + (row + first) % rows * columns;
      const float sign = random.below(2) == 0 ? 1.0f : -1.0f;
      const float factor = std::ldexp(sign, static_cast<int>(random.below(8)) - 4);
      for (std::int64_t j = 0; j < columns; ++j) to.f32()[row * columns + j] = factor * source[j];
    }
  }

  void check(const CaseView&, const CheckRequest&, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, CheckSink& sink) override {
    const TensorView& x = find_tensor(inputs, "x");
    const TensorView& y = find_tensor(outputs, "y");
    const std::int64_t columns = x.dim[1];
    double worst = 0;
    std::string worst_where;
    for (std::int64_t row = 0; row < x.dim[0]; ++row) {
      const float* values = x.f32() + row * columns;
      const float* results = y.f32() + row * columns;
      const double length = length_of(values, columns);
      for (std::int64_t j = 0; j < columns; ++j) {
        const std::string where = "row " + std::to_string(row) + ", column " + std::to_string(j);
        const double exact = values[j] / length;
        const double found = results[j];
        if (std::isnan(exact)) {
          if (!std::isnan(found))
            sink.reject(CheckFailure::wrong_value, where, found, exact,
                        "a row that has no length must be NaN throughout");
          continue;
        }
        if (found == exact) continue;
        const double error = std::fabs(found - exact) / (kUnitRoundoff * std::fabs(exact));
        if (std::isnan(worst) || error <= worst) continue;  // a NaN is worse than everything
        worst = error;
        worst_where = where;
      }
    }
    sink.figure("element_error", worst, kLimit, "u |y|", worst_where);
  }

  double flops(const CaseView& the_case) override { return 3 * elements(the_case); }
  double bytes(const CaseView& the_case) override { return 8 * elements(the_case); }

 private:
  static double elements(const CaseView& the_case) {
    return static_cast<double>(the_case.axis("rows")) *
           static_cast<double>(the_case.axis("columns"));
  }
};

}  // namespace

KBEAM_PROBLEM(NormaliseRows)
