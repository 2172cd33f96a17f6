// A Gaussian process over knob settings: what a score is likely to be where nothing was measured,
// and how sure that is. Matern 5/2 with a length of its own for each knob: a sum over single knobs,
// and less of what they do together (after Duvenaud, Nickisch and Rasmussen, 2011). Knows nothing
// of tuning.
#pragma once

#include <cstddef>
#include <vector>

namespace kbeam {

// A setting as numbers: an ordered knob from 0 to 1; another knob as its choice, equal or not.
using Point = std::vector<double>;

class GaussianProcess {
 public:
  // `ordered`: of each knob, whether its choices have an order.
  explicit GaussianProcess(std::vector<bool> ordered);

  // Points with values, which should be about standard. Lengths stay as they were last fitted.
  void set_data(std::vector<Point> points, std::vector<double> values);
  // One more point. Cheaper than set_data: the square of the number of points.
  void add(const Point& point, double value);
  // Other values for the same points.
  void set_values(std::vector<double> values);
  // Chooses lengths and noise by the likelihood of the data, starting from those it has.
  void fit();

  std::size_t size() const { return points_.size(); }
  double correlation(const Point& a, const Point& b) const;

  // What a place keeps so that one more data point costs one step and not a square.
  struct Place {
    Point point;
    std::vector<double> solved;  // L^-1 k
    double left = 1;             // variance that the data have not explained, of 1
  };
  // Brings `place` up to date with the data added since it was last here.
  void catch_up(Place& place) const;
  // After set_data or fit every place starts anew: this number is then another one.
  int version() const { return version_; }

  struct Belief {
    double mean = 0;
    double deviation = 0;
  };
  Belief belief(const Place& place) const;  // of a place that is up to date

 private:
  struct Lengths {
    std::vector<double> of_knob;
    double noise = 0.01;  // variance of a value beside 1 of the process
  };
  double correlation(const Point& a, const Point& b, const std::vector<double>& lengths) const;
  double gap(std::size_t knob, double a, double b) const;
  void factor();
  void solve_values();
  double misfit(const Lengths& lengths, const std::vector<std::size_t>& chosen) const;
  std::vector<std::size_t> choose_for_fit() const;

  std::vector<bool> ordered_;
  Lengths lengths_;
  std::vector<Point> points_;
  std::vector<double> values_;
  std::vector<std::vector<double>> factor_;  // rows of the lower triangle L of K + noise I
  std::vector<double> weights_;              // L^-1 values
  double scale_ = 1;                         // variance of the process
  int version_ = 0;
};

}  // namespace kbeam
