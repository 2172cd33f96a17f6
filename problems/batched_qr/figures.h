// The worst value of one check over a batch, and where it was found.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

namespace batched_qr {

struct Place {
  std::int64_t matrix = -1;
  std::int64_t part = -1;  // a column, a reflector: the figure's owner knows
};

// Worst relative to its limit, for limits differ by column. A NaN is worse than anything.
struct WorstFigure {
  double value = 0;
  double limit = 0;
  double ratio = -1;
  Place place;

  void offer(double new_value, double new_limit, Place new_place) {
    const double new_ratio = new_value == 0 ? 0 : new_value / new_limit;
    if (std::isnan(ratio) || new_ratio <= ratio) return;
    value = new_value;
    limit = new_limit;
    ratio = new_ratio;
    place = new_place;
  }
  void merge(const WorstFigure& other) {
    if (other.seen()) offer(other.value, other.limit, other.place);
  }
  bool seen() const { return place.matrix >= 0; }
  bool passed() const { return !seen() || value <= limit; }
  std::string where(const char* part_word) const {
    if (!seen()) return "no matrix had anything to judge";
    return "matrix " + std::to_string(place.matrix) + ", " + part_word + " " +
           std::to_string(place.part);
  }
};

}  // namespace batched_qr
