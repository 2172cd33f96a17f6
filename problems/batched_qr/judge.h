// Decides whether (H, tau) is a QR factorisation of A at a grade. Two depths: every column in FP64,
// or a secret projection that sends whatever looks odd to the first. So the quick depth never
// rejects what the full one accepts.
#pragma once

#include <kbeam/problem.h>

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "figures.h"
#include "projection.h"
#include "reflectors.h"

namespace batched_qr {

enum class Grade { fp32, contest };

struct Rejection {
  kbeam::CheckFailure failure;
  std::string where;
  double found;
  double expected;
  std::string sentence;
};

class Judge {
 public:
  Judge(Grade grade, std::int64_t m, std::int64_t n)
      : grade_(grade),
        k_(static_cast<double>(std::max(m, n))),
        v_(static_cast<std::size_t>(m)),
        norms_(static_cast<std::size_t>(n)),
        weights_(static_cast<std::size_t>(n)),
        block_(static_cast<std::size_t>(m)),
        projection_(m) {}

  void judge_fully(const Factored& f) {
    measure_columns(f);
    const std::optional<Element> odd = find_non_finite(f);
    if (!input_is_finite()) {
      if (!odd) reject_finite_output(f);
      return;
    }
    if (odd) {
      // Above this norm a correct factorisation may overflow on the way.
      if (largest_norm() <= FLT_MAX / 4) reject_non_finite(f, *odd);
      return;
    }
    if (grade_ == Grade::fp32) {
      if (std::optional<Rejection> broken = find_broken_convention(f)) reject(*broken);
      judge_columns(f);
    } else {
      judge_norm(f);
    }
    judge_orthogonality(f);
  }

  void judge_quickly(const Factored& f, std::uint64_t secret) {
    measure_columns(f);
    const bool plain = input_is_finite() && largest_norm() <= FLT_MAX / 4;
    const bool projected = plain && (grade_ == Grade::contest || !find_broken_convention(f));
    if (projected && projection_fits(f, secret)) return;
    // One proven mistake is enough; the rest of a wrong output need not be judged at full price.
    if (failed()) return;
    judge_fully(f);
    if (projected && failed()) projection_.keep_odd_one();
  }

  bool failed() const { return rejection_ || !residual_.passed() || !orthogonality_.passed(); }

  void report(kbeam::CheckDepth depth, kbeam::CheckSink& sink) const {
    const bool fp32 = grade_ == Grade::fp32;
    const bool quick = depth == kbeam::CheckDepth::quick;
    if (!quick || residual_.seen())
      sink.figure(fp32 ? "column_residual" : "normwise_residual", residual_.value,
                  residual_.seen() ? residual_.limit : residual_limit(), fp32 ? "eps" : "n eps",
                  residual_.where("column"));
    if (!quick || orthogonality_.seen())
      sink.figure("orthogonality", orthogonality_.value, orthogonality_limit(), "n eps",
                  orthogonality_.where("column of Q"));
    if (quick) {
      const WorstFigure& projected = projection_.projected();
      const WorstFigure& defect = projection_.defect();
      sink.figure("projected_residual", projected.value, projected.limit, "eps",
                  projected.where("column group"));
      sink.figure("reflector_defect", defect.value, defect_limit(), "eps",
                  defect.where("reflector"));
    }
    if (rejection_)
      sink.reject(rejection_->failure, rejection_->where, rejection_->found, rejection_->expected,
                  rejection_->sentence);
  }

 private:
  static constexpr double kEps = FLT_EPSILON;
  // How far rounding may move a column: 4 k of the smallest positive float.
  double rounding_floor() const { return 4 * k_ * 0x1p-149; }

  struct Element {
    std::int64_t row;  // -1: in tau
    std::int64_t column;
    float value;
  };

  double residual_limit() const {
    return grade_ == Grade::fp32 ? std::min(10 * std::sqrt(k_), 400.0) : 20.0;
  }
  // In units of k eps. Below k = 16 the fixed part of rounding is more than 2 k eps, in LAPACK too.
  double orthogonality_limit() const {
    return grade_ == Grade::fp32 ? 2 * std::max(k_, 16.0) / k_ : 100.0;
  }
  double column_limit(double norm) const {
    return residual_limit() + rounding_floor() / (kEps * norm);
  }

  void measure_columns(const Factored& f) {
    for (std::int64_t j = 0; j < f.n; ++j)
      norms_[j] = std::sqrt(sum_of_squares(f.a_column(j), f.m));
  }
  bool input_is_finite() const {
    double total = 0;
    for (const double norm : norms_) total += norm;
    return std::isfinite(total);
  }
  double largest_norm() const {
    double largest = 0;
    for (const double norm : norms_) largest = std::max(largest, norm);
    return largest;
  }

  static std::optional<Element> find_non_finite(const Factored& f) {
    for (std::int64_t j = 0; j < f.n; ++j) {
      const float* column = f.h_column(j);
      if (std::isfinite(sum_of_squares(column, f.m))) continue;
      for (std::int64_t i = 0; i < f.m; ++i)
        if (!std::isfinite(column[i])) return Element{i, j, column[i]};
    }
    for (std::int64_t i = 0; i < f.k; ++i)
      if (!std::isfinite(f.tau_at(i))) return Element{-1, i, f.tau_at(i)};
    return std::nullopt;
  }

  void reject(Rejection rejection) {
    if (!rejection_) rejection_ = std::move(rejection);
  }
  void reject_finite_output(const Factored& f) {
    for (std::int64_t j = 0; j < f.n; ++j)
      for (std::int64_t i = 0; i < f.m; ++i)
        if (!std::isfinite(f.a_column(j)[i]))
          return reject(
              {kbeam::CheckFailure::wrong_value, element_name(f, i, j), f.h_column(j)[i],
               f.a_column(j)[i],
               "A holds a NaN or Inf here, and no NaN or Inf appears in H or tau of this matrix"});
  }
  void reject_non_finite(const Factored& f, const Element& odd) {
    const std::string where =
        odd.row < 0 ? tau_name(f, odd.column) : element_name(f, odd.row, odd.column);
    reject({kbeam::CheckFailure::not_finite, where, odd.value, 0,
            "the output must be finite: A is, and its column norms are at most FLT_MAX / 4"});
  }

  static std::string element_name(const Factored& f, std::int64_t row, std::int64_t column) {
    return "matrix " + std::to_string(f.index) + ", row " + std::to_string(row) + ", column " +
           std::to_string(column);
  }
  static std::string tau_name(const Factored& f, std::int64_t i) {
    return "matrix " + std::to_string(f.index) + ", tau " + std::to_string(i);
  }

  // Signs, tau and zero columns as LAPACK has them. tau = 1 + |alpha| / norm lies in [1, 2] exactly
  // when R's diagonal has the sign opposite to alpha, so the range of tau is the sign check.
  std::optional<Rejection> find_broken_convention(const Factored& f) {
    constexpr auto kWrong = kbeam::CheckFailure::wrong_value;
    const double slack = orthogonality_limit() * k_ * kEps;
    for (std::int64_t i = 0; i < f.k; ++i) {
      const double tau = f.tau_at(i);
      if (tau == 0) continue;
      if (!(tau >= 1 - slack && tau <= 2 + slack))
        return Rejection{
            kWrong, tau_name(f, i), tau, tau < 1 ? 1.0 : 2.0,
            "tau must be 0 or between 1 and 2: R's diagonal takes the sign opposite to alpha"};
      if (tail_is_zero(f, i))
        return Rejection{kWrong, tau_name(f, i), tau, 0,
                         "tau must be 0 where the column is already zero below the diagonal"};
    }
    for (std::int64_t j = 0; j < f.n; ++j) {
      if (norms_[j] != 0 || sum_of_squares(f.h_column(j), f.m) == 0) continue;
      for (std::int64_t i = 0; i < f.m; ++i)
        if (f.h_column(j)[i] != 0)
          return Rejection{kWrong, element_name(f, i, j), f.h_column(j)[i], 0,
                           "a zero column of A stays exactly zero in H"};
    }
    return std::nullopt;
  }

  // Is column i exactly zero below the diagonal when its turn comes? Only asked where A itself is
  // zero there: elsewhere the answer depends on rounding, and any answer is right.
  bool tail_is_zero(const Factored& f, std::int64_t i) {
    const float* column = f.a_column(i);
    for (std::int64_t row = i + 1; row < f.m; ++row)
      if (column[row] != 0) return false;
    std::fill(block_.begin(), block_.end(), Row{});
    for (std::int64_t row = 0; row <= i; ++row) block_[row].lanes[0] = column[row];
    for (std::int64_t l = 0; l < i; ++l) {
      if (f.tau_at(l) == 0) continue;
      unpack_reflector(f, l, v_.data());
      apply_reflector(v_.data(), f.tau_at(l), l, f.m, block_.data());
    }
    for (std::int64_t row = i + 1; row < f.m; ++row)
      if (block_[row].lanes[0] != 0) return false;
    return true;
  }

  // Fills the block with columns [first, first + count) of A, applies Q' and subtracts R.
  void form_residual(const Factored& f, std::int64_t first, std::int64_t count) {
    if (count < kLanes) std::fill(block_.begin(), block_.end(), Row{});
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t row = 0; row < f.m; ++row)
        block_[row].lanes[c] = f.a_column(first + c)[row];
    apply_q_transposed(f, v_.data(), block_.data());
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t row = 0; row < std::min(first + c + 1, f.k); ++row)
        block_[row].lanes[c] -= f.h_column(first + c)[row];
  }

  void judge_columns(const Factored& f) {
    for (std::int64_t first = 0; first < f.n; first += kLanes) {
      const std::int64_t count = std::min<std::int64_t>(kLanes, f.n - first);
      form_residual(f, first, count);
      Lanes squares = {};
      for (const Row& row : block_) squares += row.lanes * row.lanes;
      for (std::int64_t c = 0; c < count; ++c) {
        const double norm = norms_[first + c];
        if (norm > 0)
          residual_.offer(std::sqrt(squares[c]) / (kEps * norm), column_limit(norm),
                          {f.index, first + c});
      }
    }
  }

  static Lanes magnitude(Lanes x) { return x < 0 ? -x : x; }

  double one_norm(const Factored& f) const {
    double largest = 0;
    for (std::int64_t j = 0; j < f.n; ++j) {
      double total = 0;
      for (std::int64_t i = 0; i < f.m; ++i)
        total += std::fabs(static_cast<double>(f.a_column(j)[i]));
      largest = std::max(largest, total);
    }
    return largest;
  }

  void judge_norm(const Factored& f) {
    WorstFigure worst;
    for (std::int64_t first = 0; first < f.n; first += kLanes) {
      const std::int64_t count = std::min<std::int64_t>(kLanes, f.n - first);
      form_residual(f, first, count);
      Lanes sums = {};
      for (const Row& row : block_) sums += magnitude(row.lanes);
      for (std::int64_t c = 0; c < count; ++c) worst.offer(sums[c], 1, {f.index, first + c});
    }
    const double unit = k_ * kEps * one_norm(f);
    // A zero matrix has nothing but the rounding floor, which is then the unit.
    if (unit > 0)
      residual_.offer(worst.value / unit, residual_limit() + rounding_floor() / unit, worst.place);
    else
      residual_.offer(worst.value / rounding_floor(), 1, worst.place);
  }

  // ||Q'Q - I||_1 from Q'(Q e_c) - e_c, eight columns at a time.
  void judge_orthogonality(const Factored& f) {
    for (std::int64_t first = 0; first < f.m; first += kLanes) {
      const std::int64_t count = std::min<std::int64_t>(kLanes, f.m - first);
      std::fill(block_.begin(), block_.end(), Row{});
      for (std::int64_t c = 0; c < count; ++c) block_[first + c].lanes[c] = 1;
      apply_q(f, std::min(first + count, f.k) - 1, v_.data(), block_.data());
      apply_q_transposed(f, v_.data(), block_.data());
      for (std::int64_t c = 0; c < count; ++c) block_[first + c].lanes[c] -= 1;
      Lanes sums = {};
      for (const Row& row : block_) sums += magnitude(row.lanes);
      for (std::int64_t c = 0; c < count; ++c)
        orthogonality_.offer(sums[c] / (k_ * kEps), orthogonality_limit(), {f.index, first + c});
    }
  }

  // What the projection compares with: half of what the grade allows, so that anything near a limit
  // is judged in full. Honest FP32 stays below a tenth of it.
  bool projection_fits(const Factored& f, std::uint64_t secret) {
    const double scale = grade_ == Grade::contest ? one_norm(f) : 0;
    const double contest_limit =
        0.5 * residual_limit() * k_ / std::sqrt(static_cast<double>(f.m * f.n));
    for (std::int64_t j = 0; j < f.n; ++j) {
      // A zero column has no weight, so nothing else would see what is written there.
      if (norms_[j] == 0 && sum_of_squares(f.h_column(j), f.m) != 0) return false;
      if (norms_[j] == 0)
        weights_[j] = {0, 0};
      else if (grade_ == Grade::fp32)
        weights_[j] = {1 / norms_[j], 0.5 * column_limit(norms_[j])};
      else
        weights_[j] = {1 / scale, contest_limit};
    }
    return projection_.fits(f, weights_, defect_limit(), secret);
  }

  double defect_limit() const { return 0.5 * orthogonality_limit() * k_; }

  Grade grade_;
  double k_;  // max(m, n), as the limits have it
  std::vector<double> v_;
  std::vector<double> norms_;  // of the columns of A
  std::vector<ColumnWeight> weights_;
  Block block_;
  Projection projection_;
  WorstFigure residual_;
  WorstFigure orthogonality_;
  std::optional<Rejection> rejection_;
};

}  // namespace batched_qr
