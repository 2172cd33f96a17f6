// Softmax over the last axis: input families, the FP64 oracle and the cost. The sizes and cases are
// in problem.toml.
#include <kbeam/problem.h>
#include <kbeam/random.h>
#include <kbeam/simd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
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
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// ---- inputs ----

// What freshen may do to a family without leaving it.
struct Family {
  const char* name;
  bool may_shift;   // adding a constant keeps what makes the family hard
  bool may_rotate;  // so does rotating the columns
  void (*fill)(Random&, float* row, std::int64_t columns, std::int64_t row_index);
};

void fill_normal(Random& random, float* row, std::int64_t columns, std::int64_t) {
  for (std::int64_t j = 0; j < columns; ++j) row[j] = static_cast<float>(2 * random.normal());
}

void fill_uniform(Random& random, float* row, std::int64_t columns, double range) {
  for (std::int64_t j = 0; j < columns; ++j)
    row[j] = static_cast<float>(range * (2 * random.uniform() - 1));
}

std::int64_t draw(Random& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(limit)));
}

void fill_all_equal(Random& random, float* row, std::int64_t columns, std::int64_t) {
  std::fill_n(row, columns, static_cast<float>(50 * random.normal()));
}
void fill_one_large(Random& random, float* row, std::int64_t columns, std::int64_t) {
  std::fill_n(row, columns, 0.0f);
  row[draw(random, columns)] = 1e4f;
}
void fill_range_88(Random& random, float* row, std::int64_t columns, std::int64_t) {
  fill_uniform(random, row, columns, 88);
}
void fill_range_100(Random& random, float* row, std::int64_t columns, std::int64_t) {
  fill_uniform(random, row, columns, 100);
}
void fill_range_1e30(Random& random, float* row, std::int64_t columns, std::int64_t) {
  fill_uniform(random, row, columns, 1e30);
}
// Differences beyond FLT_MAX.
void fill_widest(Random& random, float* row, std::int64_t columns, std::int64_t) {
  for (std::int64_t j = 0; j < columns; ++j) row[j] = random.below(2) == 0 ? -3.2e38f : 3.2e38f;
}
// The maximum moves at every step: the worst order for a running maximum.
void fill_ascending(Random& random, float* row, std::int64_t columns, std::int64_t) {
  fill_uniform(random, row, columns, 20);
  std::sort(row, row + columns);
}
void fill_denormal_differences(Random& random, float* row, std::int64_t columns, std::int64_t) {
  for (std::int64_t j = 0; j < columns; ++j)
    row[j] = std::ldexp(static_cast<float>(random.below(4096)), -149);
}
// -Inf behind a random length, as attention masks leave it; at least one column stays.
void fill_masked_tail(Random& random, float* row, std::int64_t columns, std::int64_t index) {
  fill_normal(random, row, columns, index);
  std::fill(row + 1 + draw(random, columns), row + columns, -kInfinity);
}
// Every fourth row is masked out altogether.
void fill_masked_rows(Random& random, float* row, std::int64_t columns, std::int64_t index) {
  fill_normal(random, row, columns, index);
  if (index % 4 == 1) std::fill_n(row, columns, -kInfinity);
}
void fill_one_infinity(Random& random, float* row, std::int64_t columns, std::int64_t index) {
  fill_normal(random, row, columns, index);
  if (index % 5 == 2) row[draw(random, columns)] = kInfinity;
}
// A NaN with a random payload: exponent tricks turn some payloads into finite numbers.
void fill_one_nan(Random& random, float* row, std::int64_t columns, std::int64_t index) {
  fill_normal(random, row, columns, index);
  if (index % 6 != 3) return;
  const auto payload = static_cast<std::uint32_t>(random.below(1u << 22));
  const std::uint32_t sign = random.below(2) == 0 ? 0u : 0x80000000u;
  row[draw(random, columns)] = std::bit_cast<float>(sign | 0x7fc00000u | payload);
}

constexpr Family kFamilies[] = {
    {"normal", true, true, fill_normal},
    {"all_equal", true, true, fill_all_equal},
    {"one_large", false, true, fill_one_large},
    {"range_88", false, true, fill_range_88},
    {"range_100", false, true, fill_range_100},
    {"range_1e30", false, true, fill_range_1e30},
    {"widest", false, true, fill_widest},
    {"ascending", true, false, fill_ascending},
    {"denormal_differences", false, true, fill_denormal_differences},
    {"masked_tail", true, false, fill_masked_tail},
    {"masked_rows", true, true, fill_masked_rows},
    {"one_infinity", true, true, fill_one_infinity},
    {"one_nan", true, true, fill_one_nan},
};

const Family& family_of(const CaseView& the_case) {
  for (const Family& family : kFamilies)
    if (the_case.family() == family.name) return family;
  return kFamilies[0];
}

// ---- the oracle ----

using Doubles = kbeam::Vector<double, 8>;
using Floats = kbeam::Vector<float, 8>;
using Longs = kbeam::Vector<std::int64_t, 8>;
constexpr std::int64_t kLanes = 8;

// e^x for -600 <= x <= 0, relative error below 1e-14: a Taylor polynomial after x = k ln 2 + r.
[[gnu::always_inline]] inline Doubles exp_below_zero(Doubles x) {
  constexpr double kRound = 0x1.8p52;  // adding it rounds to an integer, kept in the low bits
  const Doubles biased = x * 1.4426950408889634 + kRound;
  const Doubles k = biased - kRound;
  const Doubles r = (x - k * 0x1.62e42feep-1) - k * 0x1.a39ef35793c76p-33;
  Doubles p = r * (1.0 / 479001600) + 1.0 / 39916800;
  for (const double c : {1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                         1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0})
    p = p * r + c;
  const auto exponent = (std::bit_cast<Longs>(biased) + 1023) << 52;
  return p * std::bit_cast<Doubles>(exponent);
}

[[gnu::always_inline]] inline Doubles differences(const float* x, double most) {
  const Doubles d = __builtin_convertvector(kbeam::load<Floats>(x), Doubles) - most;
  return d < -600.0 ? Doubles{} - 600.0 : d;
}

[[gnu::always_inline]] inline double sum_lanes(Doubles v) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

// One row in double precision, padded to whole vectors with -Inf so that no loop has a tail.
struct RowOracle {
  std::vector<float> x;
  std::vector<float> y;
  std::vector<double> e;  // e^(x - max)
  double most = 0;
  double sum = 0;
  double spread = 0;  // the mean of |x - max| under the exact result

  explicit RowOracle(std::int64_t columns) {
    const auto padded = static_cast<std::size_t>((columns + kLanes - 1) / kLanes * kLanes);
    x.assign(padded, -kInfinity);
    y.assign(padded, 0.0f);
    e.assign(padded, 0.0);
  }

  // For a finite maximum and no NaN.
  void evaluate() {
    Doubles total{};
    Doubles weighted{};
    for (std::size_t j = 0; j < x.size(); j += kLanes) {
      const Doubles d = differences(&x[j], most);
      const Doubles value = exp_below_zero(d);
      kbeam::store(&e[j], value);
      total += value;
      weighted -= value * d;
    }
    sum = sum_lanes(total);
    spread = sum_lanes(weighted) / sum;
  }

  // The error of one element in the unit of the limit: u y (1 + |x - max|), after one smallest
  // denormal is free.
  [[gnu::always_inline]] inline Doubles error_at(std::size_t j, double inverse) const {
    const Doubles exact = kbeam::load<Doubles>(&e[j]) * inverse;
    const Doubles difference = __builtin_convertvector(kbeam::load<Floats>(&y[j]), Doubles) - exact;
    const Doubles error = (difference < 0.0 ? -difference : difference) - kSmallestDenormal;
    const Doubles unit = exact * kUnitRoundoff * (1.0 - differences(&x[j], most));
    return (error < 0.0 ? Doubles{} : error) / unit;  // a NaN stays a NaN
  }
};

// Whether the row has a NaN or +Inf, or nothing above -Inf: declared to be NaN throughout, as IEEE
// arithmetic gives.
enum class RowKind { finite, all_nan };

RowKind classify(const std::vector<float>& x, double& most) {
  Floats highest = Floats{} - kInfinity;
  Floats nan_seen{};
  for (std::size_t j = 0; j < x.size(); j += kLanes) {
    const Floats v = kbeam::load<Floats>(&x[j]);
    highest = v > highest ? v : highest;
    nan_seen += v != v ? Floats{} + 1.0f : Floats{};
  }
  float top = -kInfinity;
  float nans = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    top = std::max(top, highest[lane]);
    nans += nan_seen[lane];
  }
  most = top;
  return nans == 0 && std::isfinite(top) ? RowKind::finite : RowKind::all_nan;
}

struct Worst {
  double value = 0;
  std::string where;
};

std::string place(std::int64_t row, std::int64_t column) {
  return "row " + std::to_string(row) + ", column " + std::to_string(column);
}

// Judges one row after the other and keeps the worst figures.
class RowJudge {
 public:
  RowJudge(std::int64_t columns, CheckSink& sink)
      : columns_(columns), sink_(sink), oracle_(columns) {}

  void judge(std::int64_t row, const float* x, const float* y) {
    std::copy_n(x, columns_, oracle_.x.begin());
    std::copy_n(y, columns_, oracle_.y.begin());
    if (classify(oracle_.x, oracle_.most) == RowKind::all_nan) {
      judge_nan_row(row);
    } else {
      oracle_.evaluate();
      judge_finite_row(row);
    }
  }

  void report() {
    // A few roundings, and a sum in several chains: sqrt(n) / 4 leaves room for FP32 sums over long
    // rows.
    const double limit = 16 + std::sqrt(static_cast<double>(columns_)) / 4;
    sink_.figure("element_error", element_.value, limit, "u y (1 + |x - max|)", element_.where);
    sink_.figure("row_sum_error", row_sum_.value, limit, "u (1 + mean |x - max|)", row_sum_.where);
  }

 private:
  void judge_nan_row(std::int64_t row) {
    for (std::int64_t column = 0; column < columns_; ++column) {
      const float found = oracle_.y[static_cast<std::size_t>(column)];
      if (std::isnan(found)) continue;
      sink_.reject(CheckFailure::wrong_value, place(row, column), found, std::nan(""),
                   "a row with a NaN or +Inf, or with -Inf alone, must be NaN throughout");
      return;
    }
  }

  void judge_finite_row(std::int64_t row) {
    const double inverse = 1 / oracle_.sum;
    Doubles worst{};
    Doubles total{};
    Longs masked_nonzero{};
    for (std::size_t j = 0; j < oracle_.x.size(); j += kLanes) {
      const Doubles error = oracle_.error_at(j, inverse);
      worst = error > worst ? error : worst;  // NaN is found by the total
      const Floats found = kbeam::load<Floats>(&oracle_.y[j]);
      total += __builtin_convertvector(found, Doubles);
      const auto bad = (kbeam::load<Floats>(&oracle_.x[j]) == -kInfinity) & (found != 0.0f);
      masked_nonzero |= __builtin_convertvector(bad, Longs);
    }
    double row_worst = 0;
    std::int64_t any_masked = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      row_worst = std::max(row_worst, worst[lane]);
      any_masked |= masked_nonzero[lane];
    }
    const double row_total = sum_lanes(total);
    if (!std::isfinite(row_total) || any_masked != 0) {
      explain(row, inverse);
      return;
    }
    if (row_worst > element_.value)
      element_ = {row_worst, place(row, find_column(row_worst, inverse))};
    const double error =
        std::fabs(row_total - 1) - kSmallestDenormal * static_cast<double>(columns_);
    const double in_units = error / (kUnitRoundoff * (1 + oracle_.spread));
    if (in_units > row_sum_.value) row_sum_ = {in_units, "row " + std::to_string(row)};
  }

  std::int64_t find_column(double value, double inverse) const {
    for (std::size_t j = 0; j < oracle_.x.size(); j += kLanes) {
      const Doubles error = oracle_.error_at(j, inverse);
      for (int lane = 0; lane < kLanes; ++lane)
        if (error[lane] == value) return static_cast<std::int64_t>(j) + lane;
    }
    return -1;
  }

  // The first element that is not finite, or not zero where the input is -Inf.
  void explain(std::int64_t row, double inverse) {
    for (std::int64_t column = 0; column < columns_; ++column) {
      const auto j = static_cast<std::size_t>(column);
      const float found = oracle_.y[j];
      if (!std::isfinite(found)) {
        sink_.reject(CheckFailure::not_finite, place(row, column), found, oracle_.e[j] * inverse,
                     "this row has a finite maximum and no NaN");
        return;
      }
      if (oracle_.x[j] == -kInfinity && found != 0) {
        sink_.reject(CheckFailure::wrong_value, place(row, column), found, 0,
                     "an element of -Inf has the result 0 exactly");
        return;
      }
    }
  }

  std::int64_t columns_;
  CheckSink& sink_;
  RowOracle oracle_;
  Worst element_;
  Worst row_sum_;
};

class Softmax final : public kbeam::ProblemCode {
 public:
  void generate(const CaseView& the_case, std::uint64_t seed,
                std::span<const TensorView> inputs) override {
    const TensorView& x = find_tensor(inputs, "x");
    const Family& family = family_of(the_case);
    Random random(seed);
    for (std::int64_t row = 0; row < x.dim[0]; ++row)
      family.fill(random, x.f32() + row * x.dim[1], x.dim[1], row);
  }

  // Rows in another order, each rotated and shifted by a multiple of 2^-12: what the family allows
  // of these.
  void freshen(const CaseView& the_case, std::uint64_t key, std::span<const TensorView> base,
               std::span<const TensorView> fresh) override {
    const TensorView& from = find_tensor(base, "x");
    const TensorView& to = find_tensor(fresh, "x");
    const std::int64_t rows = from.dim[0];
    const std::int64_t columns = from.dim[1];
    const Family& family = family_of(the_case);
    Random random(key);
    std::int64_t step = 1 + draw(random, rows);
    while (std::gcd(step, rows) != 1) ++step;
    std::int64_t source_row = draw(random, rows);
    for (std::int64_t row = 0; row < rows; ++row) {
      const float shift = family.may_shift
                              ? static_cast<float>(draw(random, 1 << 15) - (1 << 14)) * 0x1p-12f
                              : 0.0f;
      const std::int64_t first = family.may_rotate ? draw(random, columns) : 0;
      const float* source = from.f32() + source_row * columns;
      float* target = to.f32() + row * columns;
      copy_shifted(source + first, columns - first, shift, target);
      copy_shifted(source, first, shift, target + (columns - first));
      source_row = (source_row + step) % rows;
    }
  }

  // Every element of every row at either depth: the vector oracle costs about as much as a
  // candidate.
  void check(const CaseView&, const CheckRequest&, std::span<const TensorView> inputs,
             std::span<const TensorView> outputs, CheckSink& sink) override {
    const TensorView& x = find_tensor(inputs, "x");
    const TensorView& y = find_tensor(outputs, "y");
    const std::int64_t columns = x.dim[1];
    RowJudge judge(columns, sink);
    for (std::int64_t row = 0; row < x.dim[0]; ++row)
      judge.judge(row, x.f32() + row * columns, y.f32() + row * columns);
    judge.report();
  }

  // Per element at least: comparison, subtraction, exponential by range reduction (3) and a degree
  // 5 polynomial (10), scale, sum, product.
  double flops(const CaseView& the_case) override { return 18 * elements(the_case); }
  double bytes(const CaseView& the_case) override { return 8 * elements(the_case); }

 private:
  static double elements(const CaseView& the_case) {
    return static_cast<double>(the_case.axis("rows")) *
           static_cast<double>(the_case.axis("columns"));
  }

  static void copy_shifted(const float* from, std::int64_t count, float shift, float* to) {
    if (shift == 0) {  // adding zero would turn -0 into +0
      std::copy_n(from, count, to);
      return;
    }
    using Wide = kbeam::Vector<float, 16>;
    std::int64_t j = 0;
    for (; j + 16 <= count; j += 16) kbeam::store(to + j, kbeam::load<Wide>(from + j) + shift);
    for (; j < count; ++j) to[j] = from[j] + shift;
  }
};

}  // namespace

KBEAM_PROBLEM(Softmax)
