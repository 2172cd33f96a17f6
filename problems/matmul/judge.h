// Decides whether C = A B, element by element in FP64, or by secret sums of columns that send what
// looks odd to the first. So the quick depth never rejects what the full one accepts.
#pragma once

#include <kbeam/problem.h>
#include <kbeam/random.h>
#include <kbeam/simd.h>

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace matmul {

using Doubles = kbeam::Vector<double, 8>;
using Floats = kbeam::Vector<float, 8>;
inline constexpr std::int64_t kLanes = 8;
inline constexpr double kUnitRoundoff = 0x1p-24;

// One product of the batch; all row-major and dense.
struct Product {
  std::int64_t m, n, k;
  std::int64_t index;
  const float* a;
  const float* b;
  const float* c;
};

struct Worst {
  double value = 0;
  std::string where = "no element had anything to judge";

  bool accepts(double candidate) const { return !(candidate <= value); }  // a NaN is the worst
};

inline Doubles widen(const float* from) {
  return __builtin_convertvector(kbeam::load<Floats>(from), Doubles);
}
inline Doubles magnitude(Doubles x) {
  return x < 0.0 ? -x : x;  // a NaN stays one
}

// The exponent of the last set bit of a finite float: the float is an odd multiple of 2^this. Zero
// and what is not finite are multiples of anything.
inline int last_bit(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const int exponent = static_cast<int>(bits >> 23 & 0xff);
  const std::uint32_t fraction = bits & 0x7fffff;
  if ((exponent == 0 && fraction == 0) || exponent == 0xff) return 1000;
  const std::uint32_t significand = exponent == 0 ? fraction : fraction | 0x800000;
  return std::max(exponent, 1) - 150 + std::countr_zero(significand);
}

// The exact product and |A| |B| for a few rows and sixteen columns at a time. Products of floats
// are exact in FP64; the sum is off by at most k 2^-53 |A| |B|, 2^-13 of the unit at k = 65536.
class Oracle {
 public:
  static constexpr std::int64_t kRows = 4;
  static constexpr std::int64_t kColumns = 16;
  double exact[kRows][kColumns];
  double absolute[kRows][kColumns];

  void take_columns(const Product& p, std::int64_t first) {
    const std::int64_t count = std::min(kColumns, p.n - first);
    packed_.assign(static_cast<std::size_t>(p.k * kColumns), 0.0);
    for (std::int64_t l = 0; l < p.k; ++l)
      for (std::int64_t j = 0; j < count; ++j) packed_[l * kColumns + j] = p.b[l * p.n + first + j];
  }

  void evaluate(const Product& p, std::int64_t first_row) {
    const float* rows[kRows];
    for (std::int64_t r = 0; r < kRows; ++r) rows[r] = p.a + std::min(first_row + r, p.m - 1) * p.k;
    Doubles sum[kRows][2] = {};
    Doubles total[kRows][2] = {};
    for (std::int64_t l = 0; l < p.k; ++l) {
      const Doubles b0 = kbeam::load<Doubles>(&packed_[l * kColumns]);
      const Doubles b1 = kbeam::load<Doubles>(&packed_[l * kColumns + kLanes]);
      for (std::int64_t r = 0; r < kRows; ++r) {
        const double a = rows[r][l];
        sum[r][0] += a * b0;
        sum[r][1] += a * b1;
        total[r][0] += magnitude(a * b0);
        total[r][1] += magnitude(a * b1);
      }
    }
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t half = 0; half < 2; ++half) {
        kbeam::store(&exact[r][half * kLanes], sum[r][half]);
        kbeam::store(&absolute[r][half * kLanes], total[r][half]);
      }
  }

 private:
  std::vector<double> packed_;  // k x 16
};

class Judge {
 public:
  explicit Judge(std::int64_t k)
      : k_(k),
        // Honest sums lose sqrt(k) at worst; a product with long k has to be summed in parts.
        limit_(12 + std::sqrt(static_cast<double>(std::min<std::int64_t>(k, 1024)))) {}

  void judge_fully(const Product& p) {
    find_last_bits(p);
    for (std::int64_t first = 0; first < p.n; first += Oracle::kColumns) {
      oracle_.take_columns(p, first);
      for (std::int64_t row = 0; row < p.m; row += Oracle::kRows)
        judge_tile(p, row, std::min(Oracle::kRows, p.m - row), first);
    }
  }

  // Eight groups of columns are each added up with secret signs; columns are scaled to the same
  // size first. A row whose sums are not plainly small is judged in full.
  void judge_quickly(const Product& p, std::uint64_t secret) {
    if (failed()) return;  // one proven mistake is enough
    draw_weights(p, secret);
    project_b(p);
    bool have_last_bits = false;
    const double group = static_cast<double>((p.n + kLanes - 1) / kLanes);
    for (std::int64_t i = 0; i < p.m; ++i) {
      const double figure = projected_error(p, i) * std::sqrt(group);
      const std::string where = "product " + std::to_string(p.index) + ", row " + std::to_string(i);
      if (!(figure <= projection_limit())) {
        if (!have_last_bits) find_last_bits(p);
        have_last_bits = true;
        judge_row(p, i);
        if (failed()) {
          projection_ = {figure, where};
          return;
        }
      } else if (projection_.accepts(figure)) {
        projection_ = {figure, where};
      }
    }
  }

  bool failed() const { return rejection_ || !(element_.value <= limit_) || !(exact_.value <= 0); }

  void report(kbeam::CheckDepth depth, kbeam::CheckSink& sink) const {
    if (depth == kbeam::CheckDepth::full || failed()) {
      sink.figure("element_error", element_.value, limit_, "u |A||B|", element_.where);
      sink.figure("exact_error", exact_.value, 0, "u |A||B|", exact_.where);
    }
    if (depth == kbeam::CheckDepth::quick)
      sink.figure("row_projection", projection_.value, projection_limit(), "u |A||B|",
                  projection_.where);
    if (rejection_)
      sink.reject(rejection_->failure, rejection_->where, rejection_->found, rejection_->expected,
                  rejection_->sentence);
  }

 private:
  struct Rejection {
    kbeam::CheckFailure failure;
    std::string where;
    double found;
    double expected;
    const char* sentence;
  };

  static constexpr int kNeverExact = -10000;

  double projection_limit() const { return limit_ / 4; }

  static std::string place(const Product& p, std::int64_t i, std::int64_t j) {
    return "product " + std::to_string(p.index) + ", row " + std::to_string(i) + ", column " +
           std::to_string(j);
  }

  // Of rows of A and columns of B whose numbers have 22 bits at most, counted together: more than
  // that a sum of two short parts (two of TF32) need not carry.
  struct Bits {
    int last = 1000;
    float largest = 0;
    void take(float x) {
      last = std::min(last, last_bit(x));
      if (std::fabs(x) > largest) largest = std::fabs(x);
    }
    int settled() const {
      return largest == 0 || largest < std::ldexp(1.0, last + 22) ? last : kNeverExact;
    }
  };

  void find_last_bits(const Product& p) {
    row_bits_.resize(static_cast<std::size_t>(p.m));
    for (std::int64_t i = 0; i < p.m; ++i) {
      Bits bits;
      for (std::int64_t l = 0; l < p.k; ++l) bits.take(p.a[i * p.k + l]);
      row_bits_[i] = bits.settled();
    }
    std::vector<Bits> columns(static_cast<std::size_t>(p.n));
    for (std::int64_t l = 0; l < p.k; ++l)
      for (std::int64_t j = 0; j < p.n; ++j) columns[j].take(p.b[l * p.n + j]);
    column_bits_.resize(columns.size());
    for (std::size_t j = 0; j < columns.size(); ++j) column_bits_[j] = columns[j].settled();
  }

  void judge_tile(const Product& p, std::int64_t row, std::int64_t rows, std::int64_t first) {
    oracle_.evaluate(p, row);
    const std::int64_t columns = std::min(Oracle::kColumns, p.n - first);
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t j = 0; j < columns; ++j)
        judge_element(p, row + r, first + j, oracle_.exact[r][j], oracle_.absolute[r][j]);
  }

  void judge_row(const Product& p, std::int64_t row) {
    for (std::int64_t first = 0; first < p.n; first += Oracle::kColumns) {
      oracle_.take_columns(p, first);
      judge_tile(p, row, 1, first);
    }
  }

  void judge_element(const Product& p, std::int64_t i, std::int64_t j, double exact,
                     double absolute) {
    const float found = p.c[i * p.n + j];
    if (!std::isfinite(exact)) {
      const bool same = std::isnan(exact) ? std::isnan(found) : found == exact;
      if (!same)
        reject({kbeam::CheckFailure::wrong_value, place(p, i, j), found, exact,
                "a NaN or Inf in A or B gives here what IEEE arithmetic gives"});
      return;
    }
    if (!std::isfinite(found)) {
      // Beyond this a correct sum may overflow on the way.
      if (absolute <= FLT_MAX / 2)
        reject({kbeam::CheckFailure::not_finite, place(p, i, j), found, exact,
                "the terms of this element are finite, and so are all their sums"});
      return;
    }
    const double difference = std::fabs(found - exact);
    if (must_be_exact(i, j, absolute)) {
      const double error = difference == 0 ? 0 : difference / (kUnitRoundoff * absolute);
      if (exact_.accepts(error)) exact_ = {error, place(p, i, j)};
      return;
    }
    // Every term may be rounded at the smallest subnormal.
    const double free = static_cast<double>(k_ + 1) * 0x1p-149;
    const double error = difference <= free ? 0 : (difference - free) / (kUnitRoundoff * absolute);
    if (element_.accepts(error)) element_ = {error, place(p, i, j)};
  }

  // All terms are multiples of 2^bit, and no sum of them exceeds 2^24 of these: FP32 loses nothing
  // in any order.
  bool must_be_exact(std::int64_t i, std::int64_t j, double absolute) const {
    const int bit = row_bits_[i] + column_bits_[j];
    return absolute == 0 || (bit >= -149 && absolute <= std::ldexp(1.0, std::min(bit + 24, 127)));
  }

  void reject(Rejection rejection) {
    if (!rejection_) rejection_ = std::move(rejection);
  }

  // x_j = +-1 / the largest of column j, so that small columns count like large ones.
  void draw_weights(const Product& p, std::uint64_t secret) {
    std::vector<float> largest(static_cast<std::size_t>(p.n), 0.0f);
    for (std::int64_t l = 0; l < p.k; ++l)
      for (std::int64_t j = 0; j < p.n; ++j)
        largest[j] = std::max(largest[j], std::fabs(p.b[l * p.n + j]));
    weights_.assign(static_cast<std::size_t>((p.n + kLanes - 1) / kLanes * kLanes), 0.0);
    kbeam::Random signs(secret, static_cast<std::uint64_t>(p.index));
    for (std::int64_t j = 0; j < p.n; ++j) {
      const double size = largest[j] > 0 ? 1.0 / largest[j] : 1.0;
      weights_[j] = signs.below(2) == 0 ? size : -size;
    }
  }

  // Sum over the columns j = lane, lane + 8, ... of row[j] x_j: eight groups side by side.
  Doubles project(const float* row, std::int64_t n) const {
    Doubles sum = {};
    std::int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) sum += widen(row + j) * kbeam::load<Doubles>(&weights_[j]);
    for (std::int64_t lane = 0; j + lane < n; ++lane)
      sum[lane] += row[j + lane] * weights_[j + lane];
    return sum;
  }
  Doubles project_magnitudes(const float* row, std::int64_t n) const {
    Doubles sum = {};
    std::int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes)
      sum += magnitude(widen(row + j) * kbeam::load<Doubles>(&weights_[j]));
    for (std::int64_t lane = 0; j + lane < n; ++lane)
      sum[lane] += std::fabs(row[j + lane] * weights_[j + lane]);
    return sum;
  }

  void project_b(const Product& p) {
    sums_.resize(static_cast<std::size_t>(p.k * kLanes));
    magnitudes_.resize(sums_.size());
    for (std::int64_t l = 0; l < p.k; ++l) {
      kbeam::store(&sums_[l * kLanes], project(p.b + l * p.n, p.n));
      kbeam::store(&magnitudes_[l * kLanes], project_magnitudes(p.b + l * p.n, p.n));
    }
  }

  // The worst group of row i: |(C - A B) x| in units of u |A| |B| |x|.
  double projected_error(const Product& p, std::int64_t i) const {
    Doubles expected[2] = {}, scale[2] = {};
    const float* row = p.a + i * p.k;
    for (std::int64_t l = 0; l < p.k; ++l) {
      const double a = row[l];
      expected[l % 2] += a * kbeam::load<Doubles>(&sums_[l * kLanes]);
      scale[l % 2] += std::fabs(a) * kbeam::load<Doubles>(&magnitudes_[l * kLanes]);
    }
    const Doubles difference = magnitude(project(p.c + i * p.n, p.n) - (expected[0] + expected[1]));
    const Doubles unit = kUnitRoundoff * (scale[0] + scale[1]);
    double worst = 0;
    for (std::int64_t lane = 0; lane < std::min(kLanes, p.n); ++lane) {
      const double error = difference[lane] == 0 ? 0 : difference[lane] / unit[lane];
      if (!(error <= worst)) worst = error;
      if (std::isnan(worst)) break;
    }
    return worst;
  }

  std::int64_t k_;
  double limit_;
  Oracle oracle_;
  std::vector<int> row_bits_;
  std::vector<int> column_bits_;
  std::vector<double> weights_;
  std::vector<double> sums_;        // B x, eight groups a row
  std::vector<double> magnitudes_;  // |B| |x|
  Worst element_;
  Worst exact_;
  Worst projection_;
  std::optional<Rejection> rejection_;
};

}  // namespace matmul
