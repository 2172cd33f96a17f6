// Inputs and check of the attack corpus's product, on the host: the rules of problem.cu.
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
using kbeam::find_tensor;
using kbeam::Random;
using kbeam::TensorView;

constexpr double kUnitRoundoff = 0x1p-24;
constexpr double kLimit = 16;

class SmallProduct final : public kbeam::ProblemCode {
 public:
  void generate(const CaseView& the_case, std::uint64_t seed,
                std::span<const TensorView> inputs) override {
    const TensorView& a = find_tensor(inputs, "A");
    const TensorView& b = find_tensor(inputs, "B");
    const std::string_view family = the_case.family();
    Random random(seed);
    for (std::int64_t i = 0; i < a.elements; ++i) a.f32()[i] = static_cast<float>(random.normal());
    for (std::int64_t i = 0; i < b.elements; ++i) {
      const bool is_noise = family == "noise_columns" && i % b.dim[1] % 2 == 1;
      b.f32()[i] = static_cast<float>(random.normal()) * (is_noise ? 0x1p-20f : 1);
    }
    if (family == "one_nan")
      a.f32()[random.below(static_cast<std::uint64_t>(a.elements))] =
          std::numeric_limits<float>::quiet_NaN();
  }

  // Signs and powers of two for the rows of A: exact, and within the family.
  void freshen(const CaseView&, std::uint64_t key, std::span<const TensorView> base,
               std::span<const TensorView> fresh) override {
    const TensorView& from = find_tensor(base, "A");
    Random random(key);
    for (std::int64_t row = 0; row < from.dim[0]; ++row) {
      const float sign = random.below(2) == 0 ? 1.0f : -1.0f;
      const float factor = std::ldexp(sign, static_cast<int>(random.below(8)) - 4);
      for (std::int64_t i = row * from.dim[1]; i < (row + 1) * from.dim[1]; ++i)
        find_tensor(fresh, "A").f32()[i] = factor * from.f32()[i];
    }
    const TensorView& b = find_tensor(base, "B");
    std::memcpy(find_tensor(fresh, "B").data, b.data, static_cast<std::size_t>(b.bytes()));
  }

  void check(const CaseView&, const CheckRequest&, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, CheckSink& sink) override {
    const TensorView& a = find_tensor(inputs, "A");
    const TensorView& b = find_tensor(inputs, "B");
    const TensorView& c = find_tensor(outputs, "C");
    double worst = 0;
    std::string worst_where;
    for (std::int64_t at = 0; at < c.elements; ++at) {
      const std::int64_t row = at / c.dim[1], column = at % c.dim[1];
      double exact = 0, size = 0;
      for (std::int64_t i = 0; i < a.dim[1]; ++i) {
        const double term = double{a.f32()[row * a.dim[1] + i]} * b.f32()[i * b.dim[1] + column];
        exact += term;
        size += std::fabs(term);
      }
      const double found = c.f32()[at];
      const std::string where = "row " + std::to_string(row) + ", column " + std::to_string(column);
      if (std::isnan(exact)) {
        if (!std::isnan(found))
          sink.reject(CheckFailure::wrong_value, where, found, exact, "a NaN is lost");
        continue;
      }
      if (found == exact) continue;
      const double error = std::fabs(found - exact) / (kUnitRoundoff * size);
      if (std::isnan(worst) || error <= worst) continue;  // a NaN is worse than everything
      worst = error;
      worst_where = where;
    }
    sink.figure("element_error", worst, kLimit, "u (|A| |B|)", worst_where);
  }

  double flops(const CaseView& the_case) override {
    return 2.0 * size(the_case, "m") * size(the_case, "n") * size(the_case, "k");
  }
  double bytes(const CaseView& the_case) override {
    const double m = size(the_case, "m"), n = size(the_case, "n"), k = size(the_case, "k");
    return 4 * (m * k + k * n + m * n);
  }

 private:
  static double size(const CaseView& the_case, std::string_view axis) {
    return static_cast<double>(the_case.axis(axis));
  }
};

}  // namespace

KBEAM_PROBLEM(SmallProduct)
