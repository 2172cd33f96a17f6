// The quick look at a factorisation: sums of columns with secret signs, so that an error in any
// column stays in the sum, and for every reflector a bound on how far it is from orthogonal. Says
// whether all is plainly small; proves nothing wrong.
#pragma once

#include <kbeam/random.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "figures.h"
#include "reflectors.h"

namespace batched_qr {

// How column j enters the projection: its weight, usually 1 / norm, and the error in eps that is
// plainly small.
struct ColumnWeight {
  double weight;  // 0 leaves the column out
  double limit;
};

class Projection {
 public:
  explicit Projection(std::int64_t m)
      : m_(m), v_(m), sums_of_a_(m * kLanes), sums_of_r_(m * kLanes), block_(m) {}

  bool fits(const Factored& f, const std::vector<ColumnWeight>& columns, double defect_limit,
            std::uint64_t secret) {
    kbeam::Random signs(secret, static_cast<std::uint64_t>(f.index));
    WorstFigure projected, defect;
    const std::int64_t width = columns_per_group(f.n);
    for (std::int64_t first = 0; first < f.n; first += width * kLanes) {
      double limits[kLanes] = {};
      add_up(f, columns, first, width, signs, limits);
      apply_reflectors(f, first == 0 ? &defect : nullptr, defect_limit);
      const Lanes squares = residual_squares();
      for (std::int64_t g = 0; g < kLanes; ++g)
        if (limits[g] > 0)
          projected.offer(std::sqrt(squares[g]) / FLT_EPSILON, limits[g],
                          {f.index, first / width + g});
    }
    if (!projected.passed() || !defect.passed()) {
      odd_projected_ = projected;
      odd_defect_ = defect;
      return false;
    }
    projected_.merge(projected);
    defect_.merge(defect);
    return true;
  }

  // The matrix that did not fit was found wrong: its figures count.
  void keep_odd_one() {
    projected_.merge(odd_projected_);
    defect_.merge(odd_defect_);
  }

  // The worst of what fitted, or was kept.
  const WorstFigure& projected() const { return projected_; }
  const WorstFigure& defect() const { return defect_; }

 private:
  // The more columns in a group, the more the honest rounding of many hides the error of one.
  static std::int64_t columns_per_group(std::int64_t n) {
    return n <= 512 ? (n + kLanes - 1) / kLanes : 32;
  }

  void add_up(const Factored& f, const std::vector<ColumnWeight>& columns, std::int64_t first,
              std::int64_t width, kbeam::Random& signs, double* limits) {
    std::fill(sums_of_a_.begin(), sums_of_a_.end(), 0.0);
    std::fill(sums_of_r_.begin(), sums_of_r_.end(), 0.0);
    std::uint64_t bits = 0;
    const std::int64_t end = std::min(f.n, first + width * kLanes);
    for (std::int64_t j = first; j < end; ++j) {
      if ((j - first) % 64 == 0) bits = signs.bits();
      const double weight = bits >> ((j - first) % 64) & 1 ? columns[j].weight : -columns[j].weight;
      if (weight == 0) continue;
      const std::int64_t g = (j - first) / width;
      add_scaled(sums_of_a_.data() + g * m_, f.a_column(j), m_, weight);
      add_scaled(sums_of_r_.data() + g * m_, f.h_column(j), std::min(j + 1, f.k), weight);
      limits[g] += columns[j].limit * columns[j].limit;
    }
    for (int g = 0; g < kLanes; ++g) limits[g] = std::sqrt(limits[g]);
  }

  void apply_reflectors(const Factored& f, WorstFigure* defect, double defect_limit) {
    for (std::int64_t row = 0; row < m_; ++row)
      for (int g = 0; g < kLanes; ++g) block_[row].lanes[g] = sums_of_a_[g * m_ + row];
    for (std::int64_t i = 0; i < f.k; ++i) {
      const double tau = f.tau_at(i);
      unpack_reflector(f, i, v_.data());
      if (defect)
        defect->offer(distance_from_orthogonal(f, i) / FLT_EPSILON, defect_limit, {f.index, i});
      if (tau != 0) apply_reflector(v_.data(), tau, i, m_, block_.data());
    }
  }

  // H'H - I = tau (tau v'v - 2) v v', whose largest column sum is at most this. No entry of v
  // exceeds the 1 on the diagonal, or what is left of v'v without it. With tau 0 nothing is left to
  // ask but whether v is finite.
  static double distance_from_orthogonal(const Factored& f, std::int64_t i) {
    const double tau = f.tau_at(i);
    const double rest = sum_of_squares(f.h_column(i) + i + 1, f.m - i - 1);
    if (tau == 0) return 0 * rest;
    const double length = std::sqrt(static_cast<double>(f.m - i) * (1 + rest));
    return std::fabs(tau * (tau * (1 + rest) - 2)) * length * std::sqrt(std::max(1.0, rest));
  }

  Lanes residual_squares() const {
    Lanes squares = {};
    for (std::int64_t row = 0; row < m_; ++row) {
      Lanes r;
      for (int g = 0; g < kLanes; ++g) r[g] = sums_of_r_[g * m_ + row];
      const Lanes y = block_[row].lanes - r;
      squares += y * y;
    }
    return squares;
  }

  std::int64_t m_;
  std::vector<double> v_;
  std::vector<double> sums_of_a_;  // group by group, m values each
  std::vector<double> sums_of_r_;
  Block block_;
  WorstFigure projected_;
  WorstFigure defect_;
  WorstFigure odd_projected_;
  WorstFigure odd_defect_;
};

}  // namespace batched_qr
