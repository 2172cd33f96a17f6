// Input matrices of batched QR: what every family writes for one matrix. Column-major, leading
// dimension m. Knows nothing of batches in memory; problem.cpp places the matrices.
#pragma once

#include <kbeam/random.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

namespace batched_qr {

// One matrix of a batch. `seed` is the seed of the whole batch, for choices that concern all of it.
struct Spot {
  std::int64_t m;
  std::int64_t n;
  std::int64_t index;
  std::int64_t batch;
  std::uint64_t seed;
};

using kbeam::Random;

// A batch-wide choice of one matrix that must carry the family's rare member.
inline bool chosen(const Spot& spot) {
  constexpr std::uint64_t kBatchStream = ~std::uint64_t{0};
  return Random(spot.seed, kBatchStream).below(static_cast<std::uint64_t>(spot.batch)) ==
         static_cast<std::uint64_t>(spot.index);
}

inline float random_sign(Random& random) {
  return random.bits() >> 63 ? 1.0f : -1.0f;
}

inline std::vector<std::int64_t> shuffled(std::int64_t count, Random& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t i = count - 1; i > 0; --i)
    std::swap(order[i], order[random.below(static_cast<std::uint64_t>(i) + 1)]);
  return order;
}

inline void fill_normal(float* a, std::int64_t count, Random& random) {
  for (std::int64_t i = 0; i < count; ++i) a[i] = static_cast<float>(random.normal());
}

inline double norm2(const float* x, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * x[i];
  return std::sqrt(sum);
}

inline void scale_to_norm(float* x, std::int64_t count, double norm) {
  const double old_norm = norm2(x, count);
  if (old_norm == 0) return;
  for (std::int64_t i = 0; i < count; ++i) x[i] = static_cast<float>(x[i] * (norm / old_norm));
}

// Falling, rising or shuffled powers of ten from 1 down to 10^-decades.
inline std::vector<double> graded_scales(std::int64_t count, double decades, Random& random) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const std::uint64_t kind = random.below(3);
  if (kind == 1) std::reverse(order.begin(), order.end());
  if (kind == 2) order = shuffled(count, random);
  std::vector<double> scales(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i)
    scales[i] = std::pow(10.0, -decades * static_cast<double>(order[i]) /
                                   static_cast<double>(std::max<std::int64_t>(count - 1, 1)));
  return scales;
}

inline void fill_dense(float* a, const Spot& spot, Random& random) {
  fill_normal(a, spot.m * spot.n, random);
}

// The column scaling of the public contest: from 1 to 10^-cond.
inline void scale_columns(float* a, const Spot& spot, double cond) {
  for (std::int64_t j = 0; j < spot.n; ++j) {
    const double scale =
        std::pow(10.0, -cond * static_cast<double>(j) /
                           static_cast<double>(std::max<std::int64_t>(spot.n - 1, 1)));
    for (std::int64_t i = 0; i < spot.m; ++i) a[j * spot.m + i] *= static_cast<float>(scale);
  }
}

// The contest's cond is 1 or 2; 4 is harsher.
inline void fill_scaled_dense(float* a, const Spot& spot, Random& random) {
  constexpr double kConds[] = {1, 2, 4};
  const double cond = kConds[random.below(3)];
  fill_dense(a, spot, random);
  scale_columns(a, spot, cond);
}

inline void fill_dense_cond1(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  scale_columns(a, spot, 1);
}

inline void fill_dense_cond2(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  scale_columns(a, spot, 2);
}

inline void fill_column_graded(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  const auto scales = graded_scales(spot.n, 12 + 18 * random.uniform(), random);
  for (std::int64_t j = 0; j < spot.n; ++j)
    for (std::int64_t i = 0; i < spot.m; ++i)
      a[j * spot.m + i] = static_cast<float>(a[j * spot.m + i] * scales[j]);
}

inline void fill_row_graded(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  const auto scales = graded_scales(spot.m, 4 + 6 * random.uniform(), random);
  for (std::int64_t j = 0; j < spot.n; ++j)
    for (std::int64_t i = 0; i < spot.m; ++i)
      a[j * spot.m + i] = static_cast<float>(a[j * spot.m + i] * scales[i]);
}

// Some columns at random positions are combinations of two earlier drawn ones.
inline void fill_rank_deficient(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  const auto order = shuffled(spot.n, random);
  const std::int64_t rank =
      1 + static_cast<std::int64_t>(random.below(std::max<std::int64_t>(spot.n - 1, 1)));
  for (std::int64_t c = rank; c < spot.n; ++c) {
    const float* first = a + order[random.below(rank)] * spot.m;
    const float* second = a + order[random.below(rank)] * spot.m;
    float* target = a + order[c] * spot.m;
    const double weight = random.normal();
    for (std::int64_t i = 0; i < spot.m; ++i)
      target[i] = static_cast<float>(first[i] + weight * second[i]);
  }
}

// The last quarter of the columns is the first quarter plus 1e-5 of noise.
inline void fill_near_rank(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  const std::int64_t quarter = spot.n / 4;
  for (std::int64_t j = 0; j < quarter; ++j)
    for (std::int64_t i = 0; i < spot.m; ++i) {
      float& x = a[(spot.n - quarter + j) * spot.m + i];
      x = static_cast<float>(a[j * spot.m + i] + 1e-5 * x);
    }
}

// Two clusters of singular values: half of the columns are 4 eps times as large as the others.
inline void fill_clustered(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  auto order = shuffled(spot.n, random);
  if (random.below(2) == 0) std::sort(order.begin(), order.end());
  for (std::int64_t c = spot.n / 2; c < spot.n; ++c)
    for (std::int64_t i = 0; i < spot.m; ++i) a[order[c] * spot.m + i] *= 4 * FLT_EPSILON;
}

// The contest's clusters: the last half.
inline void fill_clustered_tail(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  for (std::int64_t i = spot.n / 2 * spot.m; i < spot.n * spot.m; ++i) a[i] *= 4 * FLT_EPSILON;
}

// The contest's rank deficiency: the last quarter of the columns is zero.
inline void fill_zero_tail(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  const std::int64_t tail = spot.n / 4 * spot.m;
  std::fill_n(a + spot.n * spot.m - tail, tail, 0.0f);
}

inline void fill_band_of(float* a, const Spot& spot, Random& random, std::int64_t width) {
  for (std::int64_t j = 0; j < spot.n; ++j)
    for (std::int64_t i = 0; i < spot.m; ++i)
      a[j * spot.m + i] = std::abs(i - j) <= width ? static_cast<float>(random.normal()) : 0.0f;
}

inline void fill_band(float* a, const Spot& spot, Random& random) {
  const auto width = static_cast<std::int64_t>(1 + random.below(16));
  fill_band_of(a, spot, random, width);
}

// Every column is one direction plus noise: 1e-3 to 1e-6, where none is given.
inline void fill_collinear(float* a, const Spot& spot, Random& random,
                           std::optional<double> given = std::nullopt) {
  std::vector<double> direction(static_cast<std::size_t>(spot.m));
  for (double& x : direction) x = random.normal();
  const double noise = given ? *given : std::pow(10.0, -3 - 3 * random.uniform());
  for (std::int64_t j = 0; j < spot.n; ++j)
    for (std::int64_t i = 0; i < spot.m; ++i)
      a[j * spot.m + i] = static_cast<float>(direction[i] + noise * random.normal());
}

inline void fill_near_collinear(float* a, const Spot& spot, Random& random) {
  fill_collinear(a, spot, random);
}

inline void fill_upper(float* a, const Spot& spot, Random& random) {
  for (std::int64_t j = 0; j < spot.n; ++j)
    for (std::int64_t i = 0; i < spot.m; ++i)
      a[j * spot.m + i] = i <= j ? static_cast<float>(random.normal()) : 0.0f;
}

inline void fill_identity(float* a, const Spot& spot, Random& random) {
  std::fill_n(a, spot.m * spot.n, 0.0f);
  const bool signs = random.below(2) == 1;
  for (std::int64_t j = 0; j < std::min(spot.m, spot.n); ++j)
    a[j * spot.m + j] = signs ? random_sign(random) : 1.0f;
}

inline void fill_diagonal(float* a, const Spot& spot, Random& random) {
  std::fill_n(a, spot.m * spot.n, 0.0f);
  for (std::int64_t j = 0; j < std::min(spot.m, spot.n); ++j)
    a[j * spot.m + j] = static_cast<float>(random.normal() * std::pow(10.0, -6 * random.uniform()));
}

inline void fill_permutation(float* a, const Spot& spot, Random& random) {
  std::fill_n(a, spot.m * spot.n, 0.0f);
  const auto order = shuffled(std::max(spot.m, spot.n), random);
  for (std::int64_t j = 0; j < spot.n; ++j)
    if (order[j] < spot.m) a[j * spot.m + order[j]] = random_sign(random);
}

// Orthonormal columns by Gram-Schmidt, twice, in double; columns beyond m repeat the first ones.
inline void fill_orthogonal(float* a, const Spot& spot, Random& random) {
  const std::int64_t m = spot.m;
  const std::int64_t k = std::min(m, spot.n);
  std::vector<double> q(static_cast<std::size_t>(m * k));
  for (std::int64_t j = 0; j < k; ++j) {
    double* x = q.data() + j * m;
    for (std::int64_t i = 0; i < m; ++i) x[i] = random.normal();
    for (int pass = 0; pass < 2; ++pass)
      for (std::int64_t l = 0; l < j; ++l) {
        const double dot = std::inner_product(x, x + m, q.data() + l * m, 0.0);
        for (std::int64_t i = 0; i < m; ++i) x[i] -= dot * q[l * m + i];
      }
    const double norm = std::sqrt(std::inner_product(x, x + m, x, 0.0));
    for (std::int64_t i = 0; i < m; ++i) x[i] /= norm;
  }
  for (std::int64_t j = 0; j < spot.n; ++j)
    for (std::int64_t i = 0; i < m; ++i) a[j * m + i] = static_cast<float>(q[(j % k) * m + i]);
}

inline void fill_zero(float* a, const Spot& spot, Random&) {
  std::fill_n(a, spot.m * spot.n, 0.0f);
}

// By turns: the first, a middle, the last column, the last quarter, and columns drawn at random.
inline void fill_zero_columns(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  const auto clear = [&](std::int64_t j) { std::fill_n(a + j * spot.m, spot.m, 0.0f); };
  switch (spot.index % 5) {
    case 0:
      return clear(0);
    case 1:
      return clear(spot.n / 2);
    case 2:
      return clear(spot.n - 1);
    case 3:
      for (std::int64_t j = spot.n - spot.n / 4; j < spot.n; ++j) clear(j);
      return;
    default:
      for (std::int64_t j = 0; j < spot.n; ++j)
        if (random.below(3) == 0) clear(j);
  }
}

inline void fill_duplicate_columns(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  const std::uint64_t distinct = 1 + random.below(static_cast<std::uint64_t>(spot.n + 1) / 2);
  for (std::int64_t j = 0; j < spot.n; ++j) {
    const auto from = static_cast<std::int64_t>(random.below(distinct));
    if (from < j) std::copy_n(a + from * spot.m, spot.m, a + j * spot.m);
  }
}

inline void fill_kahan(float* a, const Spot& spot, Random& random) {
  const double theta = 0.9 + 0.4 * random.uniform();
  const double c = std::cos(theta), s = std::sin(theta);
  for (std::int64_t j = 0; j < spot.n; ++j)
    for (std::int64_t i = 0; i < spot.m; ++i)
      a[j * spot.m + i] =
          i > j ? 0.0f
                : static_cast<float>(std::pow(s, static_cast<double>(i)) * (i == j ? 1.0 : -c));
}

inline void fill_vandermonde(float* a, const Spot& spot, Random& random) {
  std::vector<double> nodes(static_cast<std::size_t>(spot.m));
  for (double& x : nodes) x = 2 * random.uniform() - 1;
  for (std::int64_t j = 0; j < spot.n; ++j)
    for (std::int64_t i = 0; i < spot.m; ++i)
      a[j * spot.m + i] = static_cast<float>(std::pow(nodes[i], static_cast<double>(j)));
}

inline void fill_hilbert(float* a, const Spot& spot, Random& random) {
  const double shift = 1 + random.uniform();
  for (std::int64_t j = 0; j < spot.n; ++j)
    for (std::int64_t i = 0; i < spot.m; ++i)
      a[j * spot.m + i] = static_cast<float>(1 / (static_cast<double>(i + j) + shift));
}

inline void fill_tiny(float* a, const Spot& spot, Random& random) {
  fill_dense(a, spot, random);
  const double scale = std::pow(10.0, -30 - 6 * random.uniform());
  for (std::int64_t i = 0; i < spot.m * spot.n; ++i) a[i] = static_cast<float>(a[i] * scale);
}

// Column norms up to FLT_MAX / 4, the largest for which the outputs must stay finite; in every
// other matrix some columns are tiny, so that one scale for the whole matrix does not do.
inline void fill_huge(float* a, const Spot& spot, Random& random) {
  constexpr double kMost = 0.999999 * FLT_MAX / 4;
  fill_dense(a, spot, random);
  for (std::int64_t j = 0; j < spot.n; ++j) {
    const bool tiny = spot.index % 2 == 1 && random.below(4) == 0;
    const double norm = tiny                   ? 1e-30
                        : random.below(2) == 0 ? kMost
                                               : kMost * (0.01 + 0.99 * random.uniform());
    scale_to_norm(a + j * spot.m, spot.m, norm);
  }
}

inline void fill_subnormal(float* a, const Spot& spot, Random& random) {
  const double scale = std::pow(10.0, -39 - 3 * random.uniform());
  for (std::int64_t i = 0; i < spot.m * spot.n; ++i)
    a[i] = static_cast<float>(random.normal() * scale);
}

// Half of the zeros are negative, and one column holds nothing but -0.
inline void fill_minus_zero(float* a, const Spot& spot, Random& random) {
  for (std::int64_t i = 0; i < spot.m * spot.n; ++i) {
    const std::uint64_t kind = random.below(4);
    a[i] = kind == 0 ? -0.0f : kind == 1 ? 0.0f : static_cast<float>(random.normal());
  }
  std::fill_n(a + static_cast<std::int64_t>(random.below(spot.n)) * spot.m, spot.m, -0.0f);
}

inline void fill_with_special(float* a, const Spot& spot, Random& random, float special) {
  fill_dense(a, spot, random);
  if (chosen(spot) || random.below(8) == 0) a[random.below(spot.m * spot.n)] = special;
}

inline void fill_one_nan(float* a, const Spot& spot, Random& random) {
  fill_with_special(a, spot, random, std::numeric_limits<float>::quiet_NaN());
}

inline void fill_one_inf(float* a, const Spot& spot, Random& random) {
  fill_with_special(a, spot, random, random_sign(random) * std::numeric_limits<float>::infinity());
}

// The contest's mixture: seven kinds, one drawn for each matrix, all with the column scaling.
inline void fill_contest_mixed(float* a, const Spot& spot, Random& random) {
  switch (random.below(7)) {
    case 0:
      fill_dense(a, spot, random);
      break;
    case 1:
      fill_zero_tail(a, spot, random);
      break;
    case 2:
      fill_near_rank(a, spot, random);
      break;
    case 3:
      fill_clustered_tail(a, spot, random);
      break;
    case 4:
      fill_band_of(a, spot, random, 16);
      break;
    case 5:
      fill_dense(a, spot, random);
      for (std::int64_t j = 0; j < spot.n; ++j)
        for (std::int64_t i = 0; i < spot.m; ++i)
          a[j * spot.m + i] *= static_cast<float>(
              std::pow(10.0, -4.0 * static_cast<double>(i) /
                                 static_cast<double>(std::max<std::int64_t>(spot.m - 1, 1))));
      break;
    default:
      fill_collinear(a, spot, random, 1e-4);
  }
  scale_columns(a, spot, 2);
}

}  // namespace batched_qr
