#include "search/gaussian_process.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace kbeam {
namespace {

// The lengths that are tried: from one choice of many to a knob that does not matter.
constexpr std::array kLengths{0.15, 0.3, 0.6, 1.2, 2.5, 6.0};
constexpr std::array kNoises{1e-4, 1e-2, 6e-2};
// Of more points than this a fit looks at the best and at a sample of the others: it costs the
// cube.
constexpr std::size_t kMostForFit = 100;
// How far a length is from what is usual, in units of likelihood: few points say little.
constexpr double kUsualLength = 0.6;
constexpr double kPriorWeight = 0.35;

// The share of the variance that is a sum of effects of single knobs. Most of what a knob does to a
// time it does whatever the others are, and that a few points show; what is left is for knobs that
// depend on each other.
constexpr double kAloneShare = 0.7;

double matern(double squared_distance) {
  const double r = std::sqrt(5 * squared_distance);
  return (1 + r + r * r / 3) * std::exp(-r);
}

// The lower triangle, row by row; false when the matrix is not positive definite.
bool factor_in_place(std::vector<std::vector<double>>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = rows[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= rows[i][k] * rows[j][k];
      if (i != j) {
        rows[i][j] = sum / rows[j][j];
        continue;
      }
      if (!(sum > 0)) return false;
      rows[i][i] = std::sqrt(sum);
    }
  return true;
}

double solve_row(const std::vector<double>& row, const std::vector<double>& solved, double value) {
  const std::size_t i = solved.size();
  for (std::size_t k = 0; k < i; ++k) value -= row[k] * solved[k];
  return value / row[i];
}

}  // namespace

GaussianProcess::GaussianProcess(std::vector<bool> ordered) : ordered_(std::move(ordered)) {
  lengths_.of_knob.assign(ordered_.size(), kUsualLength);
}

double GaussianProcess::gap(std::size_t knob, double a, double b) const {
  if (ordered_[knob]) return (a - b) * (a - b);
  return a == b ? 0 : 1;
}

double GaussianProcess::correlation(const Point& a, const Point& b,
                                    const std::vector<double>& lengths) const {
  double together = 0, alone = 0;
  for (std::size_t knob = 0; knob < a.size(); ++knob) {
    const double squared = gap(knob, a[knob], b[knob]) / (lengths[knob] * lengths[knob]);
    together += squared;
    alone += squared > 0 ? matern(squared) : 1;
  }
  if (a.empty()) return 1;
  return (1 - kAloneShare) * matern(together) + kAloneShare * alone / static_cast<double>(a.size());
}

double GaussianProcess::correlation(const Point& a, const Point& b) const {
  return correlation(a, b, lengths_.of_knob);
}

void GaussianProcess::set_data(std::vector<Point> points, std::vector<double> values) {
  CHECK(points.size() == values.size(), "each point has a value");
  points_ = std::move(points);
  values_ = std::move(values);
  factor();
}

void GaussianProcess::set_values(std::vector<double> values) {
  CHECK(points_.size() == values.size(), "each point has a value");
  values_ = std::move(values);
  solve_values();
}

void GaussianProcess::add(const Point& point, double value) {
  Place place{point, {}, 1};
  catch_up(place);
  std::vector<double> row = std::move(place.solved);
  // What rounding leaves of the diagonal must not reach zero.
  row.push_back(std::sqrt(std::max(place.left + lengths_.noise, 1e-9)));
  factor_.push_back(std::move(row));
  points_.push_back(point);
  values_.push_back(value);
  solve_values();
}

void GaussianProcess::factor() {
  ++version_;
  factor_.clear();
  for (std::size_t i = 0; i < points_.size(); ++i) {
    std::vector<double>& row = factor_.emplace_back();
    for (std::size_t j = 0; j < i; ++j) row.push_back(correlation(points_[i], points_[j]));
    row.push_back(1 + lengths_.noise);
  }
  CHECK(factor_in_place(factor_), "a correlation with noise on its diagonal is positive definite");
  solve_values();
}

void GaussianProcess::solve_values() {
  weights_.clear();
  double square = 0;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    weights_.push_back(solve_row(factor_[i], weights_, values_[i]));
    square += weights_.back() * weights_.back();
  }
  // As if one more value of size 1 had been seen: two equal ones do not make the process certain.
  scale_ = (square + 1) / static_cast<double>(values_.size() + 1);
}

void GaussianProcess::catch_up(Place& place) const {
  while (place.solved.size() < factor_.size()) {
    const std::size_t i = place.solved.size();
    place.solved.push_back(
        solve_row(factor_[i], place.solved, correlation(points_[i], place.point)));
    place.left = std::max(0.0, place.left - place.solved.back() * place.solved.back());
  }
}

GaussianProcess::Belief GaussianProcess::belief(const Place& place) const {
  CHECK(place.solved.size() == weights_.size(), "a place is up to date");
  return {std::inner_product(weights_.begin(), weights_.end(), place.solved.begin(), 0.0),
          std::sqrt(scale_ * place.left)};
}

std::vector<std::size_t> GaussianProcess::choose_for_fit() const {
  std::vector<std::size_t> order(points_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() <= kMostForFit) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values_[a] > values_[b]; });
  const std::size_t best = kMostForFit / 2, others = order.size() - best;
  for (std::size_t i = best; i < kMostForFit; ++i)
    order[i] = order[best + (i - best) * others / (kMostForFit - best)];
  order.resize(kMostForFit);
  return order;
}

// Less is better: the negative logarithm of the likelihood, the process's variance at its best, and
// of the prior of the lengths.
double GaussianProcess::misfit(const Lengths& lengths,
                               const std::vector<std::size_t>& chosen) const {
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::vector<double>& row = rows.emplace_back();
    for (std::size_t j = 0; j < i; ++j)
      row.push_back(correlation(points_[chosen[i]], points_[chosen[j]], lengths.of_knob));
    row.push_back(1 + lengths.noise);
  }
  if (!factor_in_place(rows)) return std::numeric_limits<double>::infinity();
  std::vector<double> solved;
  double square = 1, log_diagonal = 0, prior = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    solved.push_back(solve_row(rows[i], solved, values_[chosen[i]]));
    square += solved.back() * solved.back();
    log_diagonal += std::log(rows[i][i]);
  }
  for (const double length : lengths.of_knob)
    prior += kPriorWeight * std::pow(std::log(length / kUsualLength), 2);
  const auto count = static_cast<double>(chosen.size() + 1);
  return count / 2 * std::log(square / count) + log_diagonal + prior;
}

// One knob at a time: the likelihood over all lengths together has no other cheap way down.
void GaussianProcess::fit() {
  const std::vector<std::size_t> chosen = choose_for_fit();
  Lengths best = lengths_;
  double least = misfit(best, chosen);
  const auto attempt = [&](const Lengths& lengths) {
    const double found = misfit(lengths, chosen);
    if (!(found < least)) return;
    least = found;
    best = lengths;
  };
  for (const double noise : kNoises) {
    Lengths other = best;
    other.noise = noise;
    attempt(other);
  }
  for (std::size_t knob = 0; knob < ordered_.size(); ++knob)
    for (const double length : kLengths) {
      Lengths other = best;
      other.of_knob[knob] = length;
      attempt(other);
    }
  lengths_ = best;
  factor();
}

}  // namespace kbeam
