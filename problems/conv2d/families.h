// The kinds of input, as problem.toml names them, and what freshen may do to each without leaving
// it. Nothing here looks at an output.
#pragma once

#include <kbeam/random.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "layer.h"

namespace conv2d {

using kbeam::Random;

inline std::int64_t draw(Random& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(limit)));
}
inline float draw_sign(Random& random) {
  return random.below(2) == 0 ? 1.0f : -1.0f;
}
inline void fill_normal(Random& random, float* to, std::int64_t count, double scale) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(scale * random.normal());
}

inline void fill_dense(Random& random, const Layer& layer, float* x, float* w) {
  fill_normal(random, x, layer.inputs(), 1);
  fill_normal(random, w, layer.weights(), 1);
}

inline void fill_positive(Random& random, const Layer& layer, float* x, float* w) {
  for (std::int64_t i = 0; i < layer.inputs(); ++i) x[i] = static_cast<float>(random.uniform());
  for (std::int64_t i = 0; i < layer.weights(); ++i) w[i] = static_cast<float>(random.uniform());
}

// Groups of equal length times 10^0 .. 10^-9, in random order.
inline void grade(Random& random, float* to, std::int64_t groups, std::int64_t length) {
  for (std::int64_t group = 0; group < groups; ++group) {
    const float scale = static_cast<float>(std::pow(10.0, -9 * random.uniform()));
    for (std::int64_t i = 0; i < length; ++i) to[group * length + i] *= scale;
  }
}

// A norm over everything sees the large images and filters alone.
inline void fill_graded(Random& random, const Layer& layer, float* x, float* w) {
  fill_dense(random, layer, x, w);
  grade(random, x, layer.batch, layer.image());
  grade(random, w, layer.filters, layer.taps());
}

// Twelve bits against {-1, 0, 1}: exact in FP32 in any order of summation for up to 4096 taps, and
// too long for TF32, BF16 and FP16.
inline void fill_exact_integers(Random& random, const Layer& layer, float* x, float* w) {
  for (std::int64_t i = 0; i < layer.inputs(); ++i)
    x[i] = draw_sign(random) * static_cast<float>(2049 + 2 * draw(random, 1024));
  for (std::int64_t i = 0; i < layer.weights(); ++i) w[i] = static_cast<float>(draw(random, 3) - 1);
}

// A flipped or shifted filter, a mixed up channel and a wrong border all show as a wrong number.
inline void fill_impulse(Random& random, const Layer& layer, float* x, float* w) {
  std::fill_n(x, layer.inputs(), 0.0f);
  for (std::int64_t b = 0; b < layer.batch; ++b)
    x[b * layer.image() + draw(random, layer.image())] = draw_sign(random);
  for (std::int64_t i = 0; i < layer.weights(); ++i)
    w[i] = static_cast<float>(i * 2 % 2097152 + 2097153);
}

inline void fill_cancelling(Random& random, const Layer& layer, float* x, float* w) {
  for (std::int64_t i = 0; i < layer.inputs(); ++i)
    x[i] = static_cast<float>(1 + 1e-3 * random.normal());
  const std::int64_t taps = layer.taps();
  for (std::int64_t f = 0; f < layer.filters; ++f) {
    float* const filter = w + f * taps;
    double sum = 0;
    fill_normal(random, filter, taps, 1);
    for (std::int64_t t = 0; t < taps; ++t) sum += filter[t];
    for (std::int64_t t = 0; t < taps; ++t)
      filter[t] = static_cast<float>(filter[t] - sum / static_cast<double>(taps));
  }
}

inline void fill_one_huge(Random& random, const Layer& layer, float* x, float* w) {
  fill_dense(random, layer, x, w);
  const std::int64_t pixels = layer.height * layer.width;
  for (std::int64_t c = 0; c < layer.batch * layer.channels; ++c)
    x[c * pixels + draw(random, pixels)] *= 1e10f;
}

inline void fill_subnormal(Random& random, const Layer& layer, float* x, float* w) {
  fill_normal(random, x, layer.inputs(), std::pow(10.0, -41 + 1.5 * random.uniform()));
  fill_normal(random, w, layer.weights(), 1e10);
}

inline void fill_zero(Random& random, const Layer& layer, float* x, float* w) {
  fill_dense(random, layer, x, w);
  for (std::int64_t i = 0; i < layer.inputs(); ++i) x[i] = random.below(2) == 0 ? 0.0f : -0.0f;
}

// One special value in two images of three: 0 times NaN or Inf is NaN. The others must stay clean.
inline void plant(Random& random, const Layer& layer, float* x, float* w, float special) {
  fill_dense(random, layer, x, w);
  for (std::int64_t i = 0; i < layer.weights(); ++i)
    if (random.below(2) == 0) w[i] = 0;
  for (std::int64_t b = 0; b < layer.batch; ++b)
    if (b % 3 != 2) x[b * layer.image() + draw(random, layer.image())] = special;
}
inline void fill_one_nan(Random& random, const Layer& layer, float* x, float* w) {
  plant(random, layer, x, w, std::numeric_limits<float>::quiet_NaN());
}
inline void fill_one_inf(Random& random, const Layer& layer, float* x, float* w) {
  plant(random, layer, x, w, draw_sign(random) * std::numeric_limits<float>::infinity());
}

struct Family {
  std::string_view name;
  void (*fill)(Random&, const Layer&, float* x, float* w);
  bool is_exact;   // every sum is an FP32 number, in any order
  bool may_sign;   // flipping an image or a filter
  bool may_scale;  // multiplying an image by a power of two
};

inline constexpr Family kFamilies[] = {
    {"dense", fill_dense, false, true, true},
    {"positive", fill_positive, false, false, true},
    {"graded", fill_graded, false, true, true},
    {"exact_integers", fill_exact_integers, true, true, true},
    {"impulse", fill_impulse, true, true, true},
    {"cancelling", fill_cancelling, false, true, true},
    {"one_huge", fill_one_huge, false, true, true},
    {"subnormal", fill_subnormal, false, true, false},
    {"zero", fill_zero, true, true, true},
    {"one_nan", fill_one_nan, false, true, true},
    {"one_inf", fill_one_inf, false, true, true},
};

inline const Family* find_family(std::string_view name) {
  for (const Family& family : kFamilies)
    if (family.name == name) return &family;
  return nullptr;
}

}  // namespace conv2d
