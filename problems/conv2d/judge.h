// Decides whether Y is the convolution of X and W, element by element in FP64.
#pragma once

#include <kbeam/problem.h>
#include <kbeam/simd.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layer.h"

namespace conv2d {

using Doubles = kbeam::Vector<double, 8>;
inline constexpr std::int64_t kPixels = 16;  // of one row of the output, at a time
inline constexpr std::int64_t kFilters = 4;
inline constexpr double kUnitRoundoff = 0x1p-24;

struct Worst {
  double value = 0;
  std::string where = "no element had anything to judge";

  bool accepts(double candidate) const { return !(candidate <= value); }  // a NaN is the worst
};

class Judge {
 public:
  Judge(const Layer& layer, const float* x, const float* w, const float* y)
      : layer_(layer),
        x_(x),
        w_(w),
        y_(y),
        // Honest sums lose sqrt(taps) at worst; longer ones have to be made in parts.
        limit_(12 + std::sqrt(static_cast<double>(std::min<std::int64_t>(layer.taps(), 1024)))),
        windows_(static_cast<std::size_t>(layer.taps() * kPixels)) {}

  void judge(bool exactly) {
    exactly_ = exactly;
    for (std::int64_t b = 0; b < layer_.batch; ++b)
      for (std::int64_t row = 0; row < layer_.out_height; ++row)
        for (std::int64_t column = 0; column < layer_.out_width; column += kPixels) {
          take_windows(b, row, column);
          for (std::int64_t f = 0; f < layer_.filters; f += kFilters) judge_tile(b, f, row, column);
        }
  }

  void report(kbeam::CheckSink& sink) const {
    if (exactly_)
      sink.figure("exact_error", worst_.value, 0, "u |X|*|W|", worst_.where);
    else
      sink.figure("element_error", worst_.value, limit_, "u |X|*|W|", worst_.where);
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

  static Doubles magnitude(Doubles x) {
    return x < 0.0 ? -x : x;  // a NaN stays one
  }

  // The pixels under each tap, for sixteen neighbouring windows.
  void take_windows(std::int64_t b, std::int64_t row, std::int64_t column) {
    const Layer& l = layer_;
    double* to = windows_.data();
    for (std::int64_t c = 0; c < l.channels; ++c)
      for (std::int64_t r = 0; r < l.kernel_height; ++r)
        for (std::int64_t s = 0; s < l.kernel_width; ++s, to += kPixels) {
          const std::int64_t from_row = row * l.stride + r - l.padding;
          const float* const from =
              x_ + b * l.image() + (c * l.height + std::max<std::int64_t>(from_row, 0)) * l.width;
          for (std::int64_t i = 0; i < kPixels; ++i) {
            const std::int64_t at = (column + i) * l.stride + s - l.padding;
            const bool inside = from_row >= 0 && from_row < l.height && at >= 0 && at < l.width &&
                                column + i < l.out_width;
            to[i] = inside ? from[at] : 0.0;
          }
        }
  }

  // Products of floats are exact in FP64; a sum is off by at most taps 2^-53 |X| * |W|.
  void judge_tile(std::int64_t b, std::int64_t f, std::int64_t row, std::int64_t column) {
    const float* filter[kFilters];
    for (std::int64_t i = 0; i < kFilters; ++i)
      filter[i] = w_ + std::min(f + i, layer_.filters - 1) * layer_.taps();
    Doubles sum[kFilters][2] = {};
    Doubles total[kFilters][2] = {};
    for (std::int64_t t = 0; t < layer_.taps(); ++t)
      for (std::int64_t half = 0; half < 2; ++half) {
        const auto pixels = kbeam::load<Doubles>(&windows_[t * kPixels + half * (kPixels / 2)]);
        for (std::int64_t i = 0; i < kFilters; ++i) {
          const Doubles term = static_cast<double>(filter[i][t]) * pixels;
          sum[i][half] += term;
          total[i][half] += magnitude(term);
        }
      }
    for (std::int64_t i = 0; i < std::min(kFilters, layer_.filters - f); ++i)
      for (std::int64_t p = 0; p < std::min(kPixels, layer_.out_width - column); ++p)
        judge_element(b, f + i, row * layer_.out_width + column + p, sum[i][p / 8][p % 8],
                      total[i][p / 8][p % 8]);
  }

  void judge_element(std::int64_t b, std::int64_t f, std::int64_t pixel, double exact,
                     double absolute) {
    const float found = y_[(b * layer_.filters + f) * layer_.out_image() + pixel];
    const auto where = [&] { return layer_.place(b, f, pixel); };
    if (!std::isfinite(exact)) {
      const bool same = std::isnan(exact) ? std::isnan(found) : found == exact;
      if (!same)
        reject({kbeam::CheckFailure::wrong_value, where(), found, exact,
                "a NaN or Inf in a window gives here what IEEE arithmetic gives"});
      return;
    }
    if (!std::isfinite(found)) {
      // Beyond this a correct sum may overflow on the way.
      if (absolute <= FLT_MAX / 2)
        reject({kbeam::CheckFailure::not_finite, where(), found, exact,
                "the terms of this element are finite, and so are all their sums"});
      return;
    }
    // Every term may be rounded at the smallest subnormal.
    const double free = exactly_ ? 0 : static_cast<double>(layer_.taps() + 1) * 0x1p-149;
    const double difference = std::max(std::fabs(found - exact) - free, 0.0);
    const double error = difference == 0 ? 0 : difference / (kUnitRoundoff * absolute);
    if (worst_.accepts(error)) worst_ = {error, where()};
  }

  void reject(Rejection rejection) {
    if (!rejection_) rejection_ = std::move(rejection);
  }

  const Layer& layer_;
  const float* x_;
  const float* w_;
  const float* y_;
  double limit_;
  bool exactly_ = false;
  std::vector<double> windows_;  // taps x kPixels
  Worst worst_;
  std::optional<Rejection> rejection_;
};

}  // namespace conv2d
