// Row sums: inputs, the FP64 oracle and the cost. Trusted code: it runs in the judge's process and
// is never timed.
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

class RowSums final : public kbeam::ProblemCode {
 public:
  // Deterministic in `seed`: a case and a seed are all that is needed to see a failure again.
  void generate(const CaseView& the_case, std::uint64_t seed,
                std::span<const TensorView> inputs) override {
    const TensorView& x = find_tensor(inputs, "x");
    const std::int64_t rows = x.dim[0];
    const std::int64_t columns = x.dim[1];
    Random random(seed);
    for (std::int64_t i = 0; i < x.elements; ++i) x.f32()[i] = static_cast<float>(random.normal());
    if (the_case.family() == "cancelling") {
      for (std::int64_t row = 0; row < rows; ++row) {
        float* values = x.f32() + row * columns;
        for (std::int64_t j = 0; j + 1 < columns; j += 2) values[j + 1] = -(values[j] += 1000.0f);
      }
    }
    if (the_case.family() == "one_nan") {
      x.f32()[random.below(static_cast<std::uint64_t>(x.elements))] =
          std::numeric_limits<float>::quiet_NaN();
    }
  }

  // Every call gets values that no call has seen, at about the cost of a copy: rows in another
  // order, each one rotated, everything times a signed power of two. All of that is exact, so the
  // family stays what it is.
  void freshen(const CaseView&, std::uint64_t key, std::span<const TensorView> base,
               std::span<const TensorView> fresh) override {
    const TensorView& from = find_tensor(base, "x");
    const TensorView& to = find_tensor(fresh, "x");
    const std::int64_t rows = from.dim[0];
    const std::int64_t columns = from.dim[1];
    Random random(key);
    const auto first_row =
        static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(rows)));
    const auto first = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(columns)));
    const float sign = random.below(2) == 0 ? 1.0f : -1.0f;
    const float scale = std::ldexp(sign, static_cast<int>(random.below(16)) - 8);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* source = from.f32() + (row + first_row) % rows * columns;
      float* target = to.f32() + row * columns;
      for (std::int64_t j = first; j < columns; ++j) *target++ = scale * source[j];
      for (std::int64_t j = 0; j < first; ++j) *target++ = scale * source[j];
    }
  }

  // Judges the outputs against the inputs alone. The limit grows with what was added, not with the
  // result: cancellation is not the candidate's fault.
  void check(const CaseView&, const CheckRequest&, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, CheckSink& sink) override {
    const TensorView& x = find_tensor(inputs, "x");
    const TensorView& s = find_tensor(outputs, "s");
    const std::int64_t columns = x.dim[1];
    double worst = 0;
    std::string worst_where;
    for (std::int64_t row = 0; row < x.dim[0]; ++row) {
      const float* values = x.f32() + row * columns;
      double exact = 0;
      double magnitude = 0;
      for (std::int64_t j = 0; j < columns; ++j) {
        exact += values[j];
        magnitude += std::fabs(values[j]);
      }
      const double found = s.f32()[row];
      const std::string where = "row " + std::to_string(row);
      if (std::isnan(exact)) {
        if (!std::isnan(found))
          sink.reject(CheckFailure::wrong_value, where, found, exact,
                      "a row with a NaN must have the sum NaN");
        continue;
      }
      if (!std::isfinite(found)) {
        sink.reject(CheckFailure::not_finite, where, found, exact, "this row's values are finite");
        continue;
      }
      const double error = std::fabs(found - exact);
      const double in_u = error == 0 ? 0 : error / (0x1p-24 * magnitude);
      if (in_u > worst) {
        worst = in_u;
        worst_where = where;
      }
    }
    sink.figure("sum_error", worst, 8 + std::sqrt(static_cast<double>(columns)), "u", worst_where);
  }

  // The work that nobody can avoid: the judge calls a time impossible that would need more than
  // this machine has.
  double flops(const CaseView& the_case) override { return elements(the_case); }
  double bytes(const CaseView& the_case) override {
    return 4 * (elements(the_case) + static_cast<double>(the_case.axis("rows")));
  }

 private:
  static double elements(const CaseView& the_case) {
    return static_cast<double>(the_case.axis("rows")) *
           static_cast<double>(the_case.axis("columns"));
  }
};

}  // namespace

KBEAM_PROBLEM(RowSums)
