// Layer normalisation over the last axis: input families, the FP64 check and the cost. The sizes
// and cases are in problem.toml.
#include <kbeam/problem.h>
#include <kbeam/random.h>
#include <kbeam/simd.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using kbeam::CaseView;
using kbeam::CheckFailure;
using kbeam::CheckRequest;
using kbeam::CheckSink;
using kbeam::Random;
using kbeam::TensorView;

constexpr double kUnitRoundoff = 0x1p-24;
constexpr double kSmallestDenormal = 0x1p-149;
constexpr double kEpsilon = 1e-5f;  // of the formula: the float, exactly

// ---- inputs ----

std::int64_t draw(Random& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(limit)));
}

struct Span {
  Random& random;
  float* row;
  std::int64_t columns;
  std::int64_t index;  // of the row
};

void fill_normal(const Span& s, double mean, double deviation) {
  for (std::int64_t j = 0; j < s.columns; ++j)
    s.row[j] = static_cast<float>(mean + deviation * s.random.normal());
}

void fill_standard(const Span& s) {
  fill_normal(s, 0, 1);
}
void fill_mean_ten(const Span& s) {
  fill_normal(s, s.random.below(2) == 0 ? 10 : -10, 1);
}
void fill_mean_hundred(const Span& s) {
  fill_normal(s, s.random.below(2) == 0 ? 100 : -100, 1);
}
void fill_mean_thousand(const Span& s) {
  fill_normal(s, 1000, 0.1);
}
void fill_mean_ten_thousand(const Span& s) {
  fill_normal(s, s.random.below(2) == 0 ? 1e4 : -1e4, 1);
}
// Every mean from 0 to 1e4, so that every timed output shows both a coarse scale (at 0) and a
// cancelled variance (far from 0).
void fill_mixed(const Span& s) {
  constexpr double kMeans[] = {0, 100, 1, 1e3, 0, -1e4, 10, -100};
  fill_normal(s, kMeans[s.index % 8], 1);
}
void fill_constant(const Span& s) {
  std::fill_n(s.row, s.columns, static_cast<float>(100 * s.random.normal()));
}
// Differences far below sqrt(epsilon): the epsilon decides the scale.
void fill_small_variance(const Span& s) {
  fill_normal(s, 0, std::pow(10.0, -2 - 3 * s.random.uniform()));
}
void fill_huge(const Span& s) {
  fill_normal(s, 0, std::pow(10.0, 20 + 16 * s.random.uniform()));
}
void fill_tiny(const Span& s) {
  fill_normal(s, 0, std::pow(10.0, -30 - 6 * s.random.uniform()));
}
void fill_subnormal(const Span& s) {
  fill_normal(s, 0, std::pow(10.0, -39.5 - 2 * s.random.uniform()));
}
void fill_one_outlier(const Span& s) {
  fill_standard(s);
  const std::int64_t place = s.index % 3 == 0   ? 0
                             : s.index % 3 == 1 ? s.columns - 1
                                                : draw(s.random, s.columns);
  s.row[place] = 1e6f;
}
void fill_alternating(const Span& s) {
  for (std::int64_t j = 0; j < s.columns; ++j)
    s.row[j] = static_cast<float>((j % 2 == 0 ? 1e3 : -1e3) * (1 + 0.01 * s.random.uniform()));
}
void fill_sorted(const Span& s) {
  fill_normal(s, 50, 20);
  std::sort(s.row, s.row + s.columns);
}
// The first half lies around one value, the second around another: what a single shift, or a merge
// of running means, gets wrong.
void fill_two_levels(const Span& s) {
  for (std::int64_t j = 0; j < s.columns; ++j)
    s.row[j] = static_cast<float>((j < s.columns / 2 ? -1e3 : 1e3) + s.random.normal());
}
void fill_one_nan(const Span& s) {
  fill_standard(s);
  if (s.index % 4 != 1) return;
  const auto payload = static_cast<std::uint32_t>(s.random.below(1u << 22));
  s.row[draw(s.random, s.columns)] = std::bit_cast<float>(0x7fc00000u | payload);
}
void fill_one_inf(const Span& s) {
  fill_standard(s);
  if (s.index % 4 != 1) return;
  const float infinity = std::numeric_limits<float>::infinity();
  s.row[draw(s.random, s.columns)] = s.random.below(2) == 0 ? infinity : -infinity;
}

enum class Affine { plain, zero_gamma, zero_beta };

struct Family {
  std::string_view name;
  void (*fill)(const Span&);
  Affine affine;
  bool may_rotate;  // the columns of a row, without leaving the family
  bool may_scale;   // by a power of two: only where epsilon has no say
};

constexpr Family kFamilies[] = {
    {"standard", fill_standard, Affine::plain, true, false},
    {"few_columns", fill_standard, Affine::plain, true, false},
    {"mixed", fill_mixed, Affine::plain, true, false},
    {"mean_10", fill_mean_ten, Affine::plain, true, false},
    {"mean_100", fill_mean_hundred, Affine::plain, true, false},
    {"mean_1000", fill_mean_thousand, Affine::plain, true, false},
    {"mean_10000", fill_mean_ten_thousand, Affine::plain, true, false},
    {"constant", fill_constant, Affine::plain, true, true},
    {"small_variance", fill_small_variance, Affine::zero_beta, true, false},
    {"huge", fill_huge, Affine::plain, true, true},
    {"tiny", fill_tiny, Affine::zero_beta, true, true},
    {"subnormal", fill_subnormal, Affine::zero_beta, true, false},
    {"one_outlier", fill_one_outlier, Affine::plain, false, false},
    {"alternating", fill_alternating, Affine::plain, false, false},
    {"sorted", fill_sorted, Affine::plain, false, false},
    {"two_levels", fill_two_levels, Affine::plain, false, false},
    {"zero_gamma", fill_standard, Affine::zero_gamma, true, false},
    {"one_nan", fill_one_nan, Affine::plain, true, false},
    {"one_inf", fill_one_inf, Affine::plain, true, false},
};

const Family& family_of(const CaseView& the_case) {
  for (const Family& family : kFamilies)
    if (the_case.family() == family.name) return family;
  throw std::invalid_argument("layer_norm: case '" + std::string(the_case.name()) +
                              "' asks for family '" + std::string(the_case.family()) +
                              "', which problem.cpp does not have");
}

void fill_affine(Random& random, Affine affine, float* gamma, float* beta, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j) {
    const bool zero = affine == Affine::zero_gamma && random.below(2) == 0;
    gamma[j] = zero ? 0.0f : static_cast<float>(1 + 0.5 * random.normal());
    beta[j] = affine == Affine::zero_beta ? 0.0f : static_cast<float>(0.1 * random.normal());
  }
}

// ---- the check ----

using Doubles = kbeam::Vector<double, 8>;
using Floats = kbeam::Vector<float, 8>;
constexpr std::int64_t kLanes = 8;

Doubles widen(const float* from) {
  return __builtin_convertvector(kbeam::load<Floats>(from), Doubles);
}
Doubles magnitude(Doubles x) {
  return x < 0.0 ? -x : x;
}
double sum_lanes(Doubles v) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

std::string place(std::int64_t row, std::int64_t column) {
  return "row " + std::to_string(row) + ", column " + std::to_string(column);
}

// Mean and variance of a row in double, in two passes with the mean's own error taken out.
struct Moments {
  double mean = 0;
  double mean_magnitude = 0;  // of |x|
  double variance = 0;

  Moments(const float* x, std::int64_t columns) {
    const auto count = static_cast<double>(columns);
    double sum = 0, absolute = 0;
    over(
        x, columns,
        [&](double value) {
          sum += value;
          absolute += std::fabs(value);
        },
        [&](Doubles lanes) {
          sums_ += lanes;
          magnitudes_ += magnitude(lanes);
        });
    mean = (sum + sum_lanes(sums_)) / count;
    mean_magnitude = (absolute + sum_lanes(magnitudes_)) / count;
    double squares = 0, rest = 0;
    sums_ = magnitudes_ = Doubles{};
    over(
        x, columns,
        [&](double value) {
          squares += (value - mean) * (value - mean);
          rest += value - mean;
        },
        [&](Doubles lanes) {
          magnitudes_ += (lanes - mean) * (lanes - mean);
          sums_ += lanes - mean;
        });
    const double correction = (rest + sum_lanes(sums_)) / count;
    variance = std::max(0.0, (squares + sum_lanes(magnitudes_)) / count - correction * correction);
    mean += correction;
  }

 private:
  template <typename One, typename Eight>
  static void over(const float* x, std::int64_t columns, One one, Eight eight) {
    std::int64_t j = 0;
    for (; j + kLanes <= columns; j += kLanes) eight(widen(x + j));
    for (; j < columns; ++j) one(x[j]);
  }
  Doubles sums_ = {};
  Doubles magnitudes_ = {};
};

class RowJudge {
 public:
  RowJudge(std::int64_t columns, const float* gamma, const float* beta)
      : columns_(columns),
        gamma_(gamma),
        beta_(beta),
        // One chain of FP32 sums over a long row loses more: it has to be summed in parts.
        limit_(24 + std::sqrt(static_cast<double>(std::min<std::int64_t>(columns, 65536))) / 4) {}

  void judge(std::int64_t row, const float* x, const float* y) {
    const Moments moments(x, columns_);
    if (!std::isfinite(moments.mean)) {
      judge_nan_row(row, y);
      return;
    }
    const double deviation = std::sqrt(moments.variance + kEpsilon);
    const Scale scale{moments.mean, 1 / deviation, moments.mean_magnitude / deviation,
                      (2 + std::sqrt(static_cast<double>(columns_))) * kSmallestDenormal};
    Doubles worst = {}, total = {};
    std::int64_t j = 0;
    for (; j + kLanes <= columns_; j += kLanes) {
      const Doubles found = widen(y + j);
      const Doubles error =
          error_of(scale, widen(x + j), widen(gamma_ + j), widen(beta_ + j), found);
      worst = error > worst ? error : worst;  // a NaN is found by the total
      total += found;
    }
    double row_worst = 0, row_total = sum_lanes(total);
    for (int lane = 0; lane < kLanes; ++lane) row_worst = std::max(row_worst, worst[lane]);
    for (; j < columns_; ++j) {
      row_worst = std::max(row_worst, error_at(scale, x, y, j));
      row_total += y[j];
    }
    if (!std::isfinite(row_total)) {
      reject_not_finite(row, scale, x, y);
    } else if (row_worst > worst_) {
      worst_ = row_worst;
      where_ = place(row, find_column(scale, x, y, row_worst));
    }
  }

  void report(CheckSink& sink) const {
    sink.figure("element_error", worst_, limit_, "u (A + x^ + A x^) gamma", where_);
    if (rejection_)
      sink.reject(rejection_->failure, rejection_->where, rejection_->found, rejection_->expected,
                  rejection_->sentence);
  }

 private:
  struct Scale {
    double mean;
    double inverse_deviation;
    double mean_over_deviation;  // the condition of x - mean: the mean of |x| over the deviation
    double rounding_floor;       // how far subnormal rounding may move a mean
  };
  struct Rejection {
    CheckFailure failure;
    std::string where;
    double found;
    double expected;
    const char* sentence;
  };

  // The error of an element in the unit of the limit, after the roundings of beta's addition and
  // of subnormal results are free. A NaN stays one.
  template <typename T>
  static T error_of(const Scale& scale, T x, T gamma, T beta, T found) {
    const T normalised = (x - scale.mean) * scale.inverse_deviation;
    const T exact = normalised * gamma + beta;
    const T size = absolute(normalised);
    const T unit =
        kUnitRoundoff * absolute(gamma) * (scale.mean_over_deviation * (1.0 + size) + size);
    const T free = 2 * kUnitRoundoff * absolute(beta) +
                   scale.rounding_floor * (1.0 + scale.inverse_deviation * absolute(gamma));
    const T error = absolute(found - exact) - free;
    return select_positive(error) / (unit + 1e-300);
  }
  static Doubles absolute(Doubles x) { return magnitude(x); }
  static double absolute(double x) { return std::fabs(x); }
  static Doubles select_positive(Doubles x) { return x < 0.0 ? Doubles{} : x; }
  static double select_positive(double x) { return x < 0 ? 0 : x; }

  double error_at(const Scale& scale, const float* x, const float* y, std::int64_t j) const {
    return error_of<double>(scale, x[j], gamma_[j], beta_[j], y[j]);
  }

  std::int64_t find_column(const Scale& scale, const float* x, const float* y, double error) const {
    std::int64_t closest = 0;
    double distance = std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < columns_; ++j) {
      const double away = std::fabs(error_at(scale, x, y, j) - error);
      if (away < distance) {
        distance = away;
        closest = j;
      }
    }
    return closest;
  }

  void judge_nan_row(std::int64_t row, const float* y) {
    for (std::int64_t j = 0; j < columns_; ++j)
      if (!std::isnan(y[j])) {
        reject({CheckFailure::wrong_value, place(row, j), y[j], std::nan(""),
                "a row with a NaN or Inf must be NaN throughout"});
        return;
      }
  }

  void reject_not_finite(std::int64_t row, const Scale& scale, const float* x, const float* y) {
    for (std::int64_t j = 0; j < columns_; ++j)
      if (!std::isfinite(y[j])) {
        reject({CheckFailure::not_finite, place(row, j), y[j],
                (x[j] - scale.mean) * scale.inverse_deviation * gamma_[j] + beta_[j],
                "this row holds no NaN and no Inf"});
        return;
      }
  }

  void reject(Rejection rejection) {
    if (!rejection_) rejection_ = std::move(rejection);
  }

  std::int64_t columns_;
  const float* gamma_;
  const float* beta_;
  double limit_;
  double worst_ = 0;
  std::string where_ = "every element";
  std::optional<Rejection> rejection_;
};

class LayerNorm final : public kbeam::ProblemCode {
 public:
  void generate(const CaseView& the_case, std::uint64_t seed,
                std::span<const TensorView> inputs) override {
    const TensorView& x = kbeam::find_tensor(inputs, "x");
    const Family& family = family_of(the_case);
    Random random(seed);
    fill_affine(random, family.affine, kbeam::find_tensor(inputs, "gamma").f32(),
                kbeam::find_tensor(inputs, "beta").f32(), x.dim[1]);
    for (std::int64_t row = 0; row < x.dim[0]; ++row)
      family.fill({random, x.f32() + row * x.dim[1], x.dim[1], row});
  }

  // Rows in another order, each with another sign, and what the family allows of a rotation and a
  // power of two; gamma and beta with other signs.
  void freshen(const CaseView& the_case, std::uint64_t key, std::span<const TensorView> base,
               std::span<const TensorView> fresh) override {
    const TensorView& from = kbeam::find_tensor(base, "x");
    const TensorView& to = kbeam::find_tensor(fresh, "x");
    const std::int64_t rows = from.dim[0];
    const std::int64_t columns = from.dim[1];
    const Family& family = family_of(the_case);
    Random random(key);
    std::int64_t step = 1 + draw(random, rows);
    while (std::gcd(step, rows) != 1) ++step;
    std::int64_t source_row = draw(random, rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      const int exponent = family.may_scale ? static_cast<int>(draw(random, 5)) - 2 : 0;
      const float factor = std::ldexp(random.below(2) == 0 ? 1.0f : -1.0f, exponent);
      const std::int64_t first = family.may_rotate ? draw(random, columns) : 0;
      const float* source = from.f32() + source_row * columns;
      float* target = to.f32() + row * columns;
      copy_scaled(source + first, columns - first, factor, target);
      copy_scaled(source, first, factor, target + (columns - first));
      source_row = (source_row + step) % rows;
    }
    for (const char* name : {"gamma", "beta"}) {
      const float* source = kbeam::find_tensor(base, name).f32();
      float* target = kbeam::find_tensor(fresh, name).f32();
      for (std::int64_t j = 0; j < columns; ++j)
        target[j] = random.below(2) == 0 ? source[j] : -source[j];
    }
  }

  // Every element of every row at either depth: the oracle costs about as much as a candidate.
  void check(const CaseView&, const CheckRequest&, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, CheckSink& sink) override {
    const TensorView& x = kbeam::find_tensor(inputs, "x");
    const TensorView& y = kbeam::find_tensor(outputs, "y");
    RowJudge judge(x.dim[1], kbeam::find_tensor(inputs, "gamma").f32(),
                   kbeam::find_tensor(inputs, "beta").f32());
    for (std::int64_t row = 0; row < x.dim[0]; ++row)
      judge.judge(row, x.f32() + row * x.dim[1], y.f32() + row * x.dim[1]);
    judge.report(sink);
  }

  // Sum; difference, square and sum; difference, scale, gamma, beta.
  double flops(const CaseView& the_case) override { return 8 * elements(the_case); }
  double bytes(const CaseView& the_case) override {
    return 8 * elements(the_case) + 8 * static_cast<double>(the_case.axis("columns"));
  }

 private:
  static double elements(const CaseView& the_case) {
    return static_cast<double>(the_case.axis("rows")) *
           static_cast<double>(the_case.axis("columns"));
  }

  static void copy_scaled(const float* __restrict from, std::int64_t count, float factor,
                          float* __restrict to) {
    for (std::int64_t j = 0; j < count; ++j) to[j] = from[j] * factor;
  }
};

}  // namespace

KBEAM_PROBLEM(LayerNorm)
