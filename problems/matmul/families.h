// The kinds of input, as problem.toml names them, and what freshen may do to each without leaving
// it. Every family fills one pair (A, B); nothing here looks at an output.
#pragma once

#include <kbeam/random.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

namespace matmul {

using kbeam::Random;

// One pair of row-major matrices of the batch.
struct Pair {
  std::int64_t m, n, k;
  std::int64_t index;  // in the batch
  float* a;            // m x k
  float* b;            // k x n

  float& a_at(std::int64_t i, std::int64_t l) const { return a[i * k + l]; }
  float& b_at(std::int64_t l, std::int64_t j) const { return b[l * n + j]; }
};

inline std::int64_t draw(Random& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(limit)));
}
inline float draw_sign(Random& random) {
  return random.below(2) == 0 ? 1.0f : -1.0f;
}
inline float draw_power_of_ten(Random& random, double least, double most) {
  return static_cast<float>(std::pow(10.0, least + (most - least) * random.uniform()));
}
inline void fill_normal(Random& random, float* to, std::int64_t count, float scale) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(scale * random.normal());
}
// Exponents from 0 down to -decades in equal steps, in random order.
inline std::vector<float> shuffled_grades(Random& random, std::int64_t count, double decades) {
  std::vector<float> grades(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    grades[i] = static_cast<float>(
        std::pow(10.0, -decades * static_cast<double>(i) /
                           static_cast<double>(std::max<std::int64_t>(1, count - 1))));
  for (std::int64_t i = count - 1; i > 0; --i) std::swap(grades[i], grades[draw(random, i + 1)]);
  return grades;
}

inline void fill_dense(Random& random, const Pair& p) {
  fill_normal(random, p.a, p.m * p.k, 1);
  fill_normal(random, p.b, p.k * p.n, 1);
}

inline void fill_positive(Random& random, const Pair& p) {
  for (std::int64_t i = 0; i < p.m * p.k; ++i) p.a[i] = static_cast<float>(random.uniform());
  for (std::int64_t i = 0; i < p.k * p.n; ++i) p.b[i] = static_cast<float>(random.uniform());
}

// A norm over everything sees the large rows and columns alone.
inline void fill_graded(Random& random, const Pair& p) {
  fill_dense(random, p);
  const double decades = random.below(2) == 0 ? 6 : 12;
  const std::vector<float> rows = shuffled_grades(random, p.m, decades);
  const std::vector<float> columns = shuffled_grades(random, p.n, decades);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t l = 0; l < p.k; ++l) p.a_at(i, l) *= rows[i];
  for (std::int64_t l = 0; l < p.k; ++l)
    for (std::int64_t j = 0; j < p.n; ++j) p.b_at(l, j) *= columns[j];
}

// Twelve bits against {-1, 0, 1}: exact in FP32 in any order of summation while 4095 k < 2^24, and
// too long for TF32, BF16 and FP16.
inline void fill_exact_integers(Random& random, const Pair& p) {
  for (std::int64_t i = 0; i < p.m * p.k; ++i)
    p.a[i] = draw_sign(random) * static_cast<float>(2049 + 2 * draw(random, 1024));
  for (std::int64_t i = 0; i < p.k * p.n; ++i) p.b[i] = static_cast<float>(draw(random, 3) - 1);
}

// Terms that cancel in pairs up to a millionth, the two of a pair far apart and of other factors,
// so that rounding the factors does not cancel.
inline void fill_cancelling(Random& random, const Pair& p) {
  fill_dense(random, p);
  std::vector<std::int64_t> order(static_cast<std::size_t>(p.k));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = p.k - 1; i > 0; --i) std::swap(order[i], order[draw(random, i + 1)]);
  for (std::int64_t t = 0; t + 1 < p.k; t += 2) {
    const std::int64_t one = order[t], other = order[t + 1];
    const double ratio = 1 + random.uniform();
    for (std::int64_t i = 0; i < p.m; ++i)
      p.a_at(i, other) = static_cast<float>(-p.a_at(i, one) * ratio);
    for (std::int64_t j = 0; j < p.n; ++j)
      p.b_at(other, j) =
          static_cast<float>(p.b_at(one, j) / ratio * (1 + 1e-6 * (2 * random.uniform() - 1)));
  }
}

// Column l of A is as large as row l of B is small: every product is near 1, no factor is.
inline void fill_ill_scaled(Random& random, const Pair& p) {
  fill_dense(random, p);
  for (std::int64_t l = 0; l < p.k; ++l) {
    const float scale = draw_power_of_ten(random, -30, 30);
    for (std::int64_t i = 0; i < p.m; ++i) p.a_at(i, l) *= scale;
    for (std::int64_t j = 0; j < p.n; ++j) p.b_at(l, j) /= scale;
  }
}

inline void fill_one_huge(Random& random, const Pair& p) {
  fill_dense(random, p);
  for (std::int64_t i = 0; i < p.m; ++i) p.a_at(i, draw(random, p.k)) *= 1e10f;
}

// Flush-to-zero loses all of A.
inline void fill_subnormal(Random& random, const Pair& p) {
  fill_normal(random, p.a, p.m * p.k, draw_power_of_ten(random, -41, -39.5));
  fill_normal(random, p.b, p.k * p.n, 1e10f);
}

// Flush-to-zero loses all of C.
inline void fill_subnormal_results(Random& random, const Pair& p) {
  fill_normal(random, p.a, p.m * p.k, 1e-20f);
  fill_normal(random, p.b, p.k * p.n, static_cast<float>(1e-21 / std::sqrt(p.k)));
}

inline void fill_low_rank(Random& random, const Pair& p) {
  std::vector<float> left(static_cast<std::size_t>(p.m)), middle(static_cast<std::size_t>(p.k)),
      right(static_cast<std::size_t>(p.n));
  fill_normal(random, left.data(), p.m, 1);
  fill_normal(random, middle.data(), p.k, 1);
  fill_normal(random, right.data(), p.n, 1);
  for (std::int64_t i = 0; i < p.m; ++i)
    for (std::int64_t l = 0; l < p.k; ++l) p.a_at(i, l) = left[i] * middle[l];
  for (std::int64_t l = 0; l < p.k; ++l)
    for (std::int64_t j = 0; j < p.n; ++j) p.b_at(l, j) = middle[p.k - 1 - l] * right[j];
}

// By turns A and B.
inline void fill_identity(Random& random, const Pair& p) {
  fill_dense(random, p);
  if (p.index % 2 == 0) {
    for (std::int64_t i = 0; i < p.m; ++i)
      for (std::int64_t l = 0; l < p.k; ++l) p.a_at(i, l) = i == l ? 1.0f : 0.0f;
  } else {
    for (std::int64_t l = 0; l < p.k; ++l)
      for (std::int64_t j = 0; j < p.n; ++j) p.b_at(l, j) = l == j ? 1.0f : 0.0f;
  }
}

// A signed one-hot matrix against numbers that tell their place: a swapped tile shows as a wrong
// number, and every element must be exact.
inline void fill_permutation(Random& random, const Pair& p) {
  std::fill_n(p.a, p.m * p.k, 0.0f);
  const std::int64_t shift = draw(random, p.k);
  for (std::int64_t i = 0; i < p.m; ++i) p.a_at(i, (i + shift) % p.k) = draw_sign(random);
  for (std::int64_t l = 0; l < p.k; ++l)
    for (std::int64_t j = 0; j < p.n; ++j)
      p.b_at(l, j) = static_cast<float>((l * p.n + j) * 2 % 2097152 + 2097153);
}

inline void fill_zero(Random& random, const Pair& p) {
  fill_dense(random, p);
  float* const target = p.index % 2 == 0 ? p.a : p.b;
  const std::int64_t count = p.index % 2 == 0 ? p.m * p.k : p.k * p.n;
  for (std::int64_t i = 0; i < count; ++i) target[i] = random.below(2) == 0 ? 0.0f : -0.0f;
}

// One special value in A or B, where half of what it meets is zero: 0 times NaN or Inf is NaN.
inline void plant(Random& random, const Pair& p, float special) {
  fill_dense(random, p);
  if (p.index % 3 == 2) return;  // a neighbour that must stay clean
  const std::int64_t l = draw(random, p.k);
  if (p.index % 3 == 0) {
    p.a_at(draw(random, p.m), l) = special;
    for (std::int64_t j = 0; j < p.n; ++j)
      if (random.below(2) == 0) p.b_at(l, j) = 0;
  } else {
    p.b_at(l, draw(random, p.n)) = special;
    for (std::int64_t i = 0; i < p.m; ++i)
      if (random.below(2) == 0) p.a_at(i, l) = 0;
  }
}
inline void fill_one_nan(Random& random, const Pair& p) {
  plant(random, p, std::numeric_limits<float>::quiet_NaN());
}
inline void fill_one_inf(Random& random, const Pair& p) {
  plant(random, p, draw_sign(random) * std::numeric_limits<float>::infinity());
}

struct Family {
  std::string_view name;
  void (*fill)(Random&, const Pair&);
  bool may_sign;   // flipping column l of A together with row l of B
  bool may_move;   // permuting rows of A, rotating columns of B
  bool may_scale;  // multiplying A by a power of two
};

inline constexpr Family kFamilies[] = {
    {"dense", fill_dense, true, true, true},
    {"positive", fill_positive, false, true, true},
    {"graded", fill_graded, true, true, true},
    {"exact_integers", fill_exact_integers, true, true, true},
    {"cancelling", fill_cancelling, true, true, true},
    {"ill_scaled", fill_ill_scaled, true, true, false},
    {"one_huge", fill_one_huge, true, true, true},
    {"subnormal", fill_subnormal, true, true, false},
    {"subnormal_results", fill_subnormal_results, true, true, false},
    {"low_rank", fill_low_rank, true, true, true},
    {"identity", fill_identity, false, false, true},
    {"permutation", fill_permutation, true, true, true},
    {"zero", fill_zero, true, true, true},
    {"one_nan", fill_one_nan, true, true, true},
    {"one_inf", fill_one_inf, true, true, true},
};

inline const Family* find_family(std::string_view name) {
  for (const Family& family : kFamilies)
    if (family.name == name) return &family;
  return nullptr;
}

}  // namespace matmul
