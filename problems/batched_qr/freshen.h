// Exact changes that turn a matrix into content no call has seen, inside its family and at about
// the cost of a copy.
#pragma once

#include <kbeam/random.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "families.h"

namespace batched_qr {

class Freshener {
 public:
  Freshener(const Freshening& rules, std::int64_t m)
      : rules_(rules), m_(m), order_(m), factors_(m) {}

  void freshen(const float* base, std::int64_t n, Random& random, float* fresh) {
    draw_rows(random);
    std::uint64_t bits = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      if (j % 64 == 0) bits = random.bits();
      const bool flip = rules_.columns == Freshening::Columns::flip_signs && (bits >> (j % 64) & 1);
      write_column(base + j * m_, flip ? -1.0f : 1.0f, fresh + j * m_);
    }
  }

 private:
  void draw_rows(Random& random) {
    const int span = rules_.most_exponent - rules_.least_exponent + 1;
    const int exponent =
        rules_.least_exponent + static_cast<int>(random.below(static_cast<std::uint64_t>(span)));
    const float scale = std::ldexp(1.0f, exponent);
    std::uint64_t bits = 0;
    for (std::int64_t i = 0; i < m_; ++i) {
      if (i % 64 == 0) bits = random.bits();
      factors_[i] = bits >> (i % 64) & 1 ? scale : -scale;
      order_[i] = static_cast<std::int32_t>(i);
    }
    if (rules_.rows == Freshening::Rows::keep) return;
    for (std::int64_t i = m_ - 1; i > 0; --i)
      std::swap(order_[i], order_[random.below(static_cast<std::uint64_t>(i) + 1)]);
  }

  void write_column(const float* from, float sign, float* to) const {
    const std::int32_t* order = order_.data();
    const float* factors = factors_.data();
    if (rules_.rows == Freshening::Rows::keep)
      for (std::int64_t i = 0; i < m_; ++i) to[i] = from[i] * (factors[i] * sign);
    else
      for (std::int64_t i = 0; i < m_; ++i) to[i] = from[order[i]] * (factors[i] * sign);
  }

  Freshening rules_;
  std::int64_t m_;
  std::vector<std::int32_t> order_;
  std::vector<float> factors_;  // sign and scale of every row
};

}  // namespace batched_qr
