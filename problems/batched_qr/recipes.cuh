// The input families for the GPU: any four neighbouring entries of a matrix from its recipe alone.
// The words and the order of the families are those of families.h; the numbers drawn are not.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "draws.cuh"

namespace batched_qr {

enum class Kind : int {
  dense,
  scaled_dense,
  column_graded,
  row_graded,
  rank_deficient,
  near_rank,
  clustered,
  band,
  near_collinear,
  upper,
  identity,
  diagonal,
  permutation,
  orthogonal,
  zero,
  zero_columns,
  duplicate_columns,
  kahan,
  vandermonde,
  hilbert,
  tiny,
  huge,
  subnormal,
  minus_zero,
  one_nan,
  one_inf,
  mixed,
  dense_cond1,
  dense_cond2,
  zero_tail,
  clustered_tail,
  contest_mixed,
  none
};

inline constexpr std::string_view kKindNames[] = {"dense",
                                                  "scaled_dense",
                                                  "column_graded",
                                                  "row_graded",
                                                  "rank_deficient",
                                                  "near_rank",
                                                  "clustered",
                                                  "band",
                                                  "near_collinear",
                                                  "upper",
                                                  "identity",
                                                  "diagonal",
                                                  "permutation",
                                                  "orthogonal",
                                                  "zero",
                                                  "zero_columns",
                                                  "duplicate_columns",
                                                  "kahan",
                                                  "vandermonde",
                                                  "hilbert",
                                                  "tiny",
                                                  "huge",
                                                  "subnormal",
                                                  "minus_zero",
                                                  "one_nan",
                                                  "one_inf",
                                                  "mixed",
                                                  "dense_cond1",
                                                  "dense_cond2",
                                                  "zero_tail",
                                                  "clustered_tail",
                                                  "contest_mixed"};

inline Kind find_kind(std::string_view name) {
  int kind = 0;
  for (const std::string_view one : kKindNames) {
    if (one == name) return static_cast<Kind>(kind);
    ++kind;
  }
  return Kind::none;
}

struct BatchShape {
  std::int64_t batch;
  int m;
  int n;
  QR_BOTH int k() const { return m < n ? m : n; }
};

// All that one matrix needs to know beyond the place of an entry.
struct Recipe {
  Draws draws;
  Kind kind;
  int m, n;
  int index;              // of the matrix
  bool rare;              // this matrix carries the NaN or Inf
  int count;              // rank, band width, number of distinct columns: the kind knows
  double scale;           // of the matrix, of its noise, or an angle: the kind knows
  double decades;         // of a grading
  double column_decades;  // the contest's column scaling, on top of the kind
  Order columns;
  Order rows;
};

// What one column needs to know; made once for all of its entries.
struct Column {
  int index;
  int first;   // the normal column that it is made of
  int second;  // another one, added with `weight`
  float weight;
  bool zero;
  double scale;
};

QR_BOTH double power_of_ten(double exponent) {
  return exp10(exponent);
}
QR_BOTH int at_least(int least, int value) {
  return value < least ? least : value;
}

QR_BOTH Kind contest_kind(std::uint32_t which) {
  constexpr Kind kKinds[] = {Kind::dense,          Kind::zero_tail, Kind::near_rank,
                             Kind::clustered_tail, Kind::band,      Kind::row_graded,
                             Kind::near_collinear};
  return kKinds[which];
}

enum Choice : std::uint64_t {
  kWhich,
  kHard,
  kOrderOfColumns,
  kOrderOfRows,
  kCount,
  kScale,
  kDecades,
  kPlace
};

QR_BOTH Recipe make_recipe(Kind family, const BatchShape& shape, std::int64_t matrix,
                           std::uint64_t seed) {
  Recipe recipe{};
  const Draws draws = draws_of(seed, static_cast<std::uint64_t>(matrix));
  const Draws whole = draws_of(seed, ~std::uint64_t{0});
  const auto choose = [&](Choice what, std::uint32_t limit) {
    return draws.below(Purpose::choice, what, limit);
  };
  const auto part = [&](Choice what) { return draws.uniform(Purpose::choice, what); };
  const bool chosen =
      whole.below(Purpose::choice, kPlace, static_cast<std::uint32_t>(shape.batch)) == matrix;

  recipe.draws = draws;
  recipe.m = shape.m;
  recipe.n = shape.n;
  recipe.index = static_cast<int>(matrix);
  recipe.kind = family;
  if (family == Kind::mixed) {
    const bool hard = chosen || choose(kHard, 8) == 0;
    constexpr auto kOthers = static_cast<std::uint32_t>(Kind::mixed) - 1;
    recipe.kind = hard ? static_cast<Kind>(1 + choose(kWhich, kOthers)) : Kind::dense;
  }
  const bool contest = family == Kind::contest_mixed;
  if (contest) recipe.kind = contest_kind(choose(kWhich, 7));

  const auto columns = static_cast<std::uint32_t>(shape.n),
             rows = static_cast<std::uint32_t>(shape.m);
  recipe.columns = {static_cast<int>(choose(kOrderOfColumns, 3)),
                    {draws.bits(Purpose::shuffle, 0), columns}};
  recipe.rows = {static_cast<int>(choose(kOrderOfRows, 3)),
                 {draws.bits(Purpose::shuffle, 1), rows}};
  recipe.rare = chosen || choose(kHard, 8) == 0;
  switch (recipe.kind) {
    case Kind::scaled_dense:
      recipe.column_decades = 1 << choose(kScale, 3);
      break;
    case Kind::column_graded:
      recipe.decades = 12 + 18 * part(kDecades);
      break;
    case Kind::row_graded:
      recipe.decades = contest ? 4 : 4 + 6 * part(kDecades);
      if (contest) recipe.rows.kind = 0;
      break;
    case Kind::rank_deficient:
      recipe.count = 1 + static_cast<int>(choose(kCount, at_least(1, shape.n - 1)));
      recipe.columns.kind = 2;
      break;
    case Kind::clustered:
      if (recipe.columns.kind == 1) recipe.columns.kind = 0;
      break;
    case Kind::clustered_tail:
      recipe.columns.kind = 0;
      recipe.kind = Kind::clustered;
      break;
    case Kind::band:
      recipe.count = contest ? 16 : 1 + static_cast<int>(choose(kCount, 16));
      break;
    case Kind::near_collinear:
      recipe.scale = contest ? 1e-4 : power_of_ten(-3 - 3 * part(kScale));
      break;
    case Kind::permutation:
      recipe.columns = {2, {draws.bits(Purpose::shuffle, 2), rows > columns ? rows : columns}};
      break;
    case Kind::orthogonal:
      recipe.columns = {2, {draws.bits(Purpose::shuffle, 2), rows}};
      recipe.rows.kind = 2;
      break;
    case Kind::identity:
      recipe.count = static_cast<int>(choose(kCount, 2));
      break;
    case Kind::duplicate_columns:
      recipe.count = 1 + static_cast<int>(choose(kCount, (columns + 1) / 2));
      break;
    case Kind::kahan:
      recipe.scale = 0.9 + 0.4 * part(kScale);
      break;
    case Kind::hilbert:
      recipe.scale = 1 + part(kScale);
      break;
    case Kind::tiny:
      recipe.scale = power_of_ten(-30 - 6 * part(kScale));
      break;
    case Kind::subnormal:
      recipe.scale = power_of_ten(-39 - 3 * part(kScale));
      break;
    case Kind::minus_zero:
      recipe.count = static_cast<int>(choose(kCount, columns));
      break;
    case Kind::one_nan:
    case Kind::one_inf:
      recipe.count = static_cast<int>(choose(kPlace, rows * columns));
      break;
    case Kind::dense_cond1:
      recipe.column_decades = 1;
      break;
    case Kind::dense_cond2:
      recipe.column_decades = 2;
      break;
    default:
      break;
  }
  if (contest) recipe.column_decades = 2;
  return recipe;
}

QR_BOTH bool is_zero_column(const Recipe& r, int j) {
  switch (r.index % 5) {
    case 0:
      return j == 0;
    case 1:
      return j == r.n / 2;
    case 2:
      return j == r.n - 1;
    case 3:
      return j >= r.n - r.n / 4;
    default:
      return r.draws.below(Purpose::column, j, 3) == 0;
  }
}

// The norm that `huge` gives to a column: up to FLT_MAX / 4, the largest for which outputs must
// stay finite; in every other matrix some are tiny, so that one scale for the matrix does not do.
QR_BOTH double huge_norm(const Recipe& r, int j) {
  constexpr double kMost = 0.999999 * FLT_MAX / 4;
  const std::uint64_t at = static_cast<std::uint64_t>(j) * 4;
  if (r.index % 2 == 1 && r.draws.below(Purpose::column, at, 4) == 0) return 1e-30;
  if (r.draws.below(Purpose::column, at + 1, 2) == 0) return kMost;
  return kMost * (0.01 + 0.99 * r.draws.uniform(Purpose::column, at + 2));
}

// `huge` columns are left unscaled here: their scale takes the norm, which the caller computes.
QR_BOTH Column make_column(const Recipe& r, int j) {
  Column column{j, j, -1, 0, false, 1};
  switch (r.kind) {
    case Kind::column_graded:
      column.scale = power_of_ten(-r.decades * r.columns.at(j) / at_least(1, r.n - 1));
      break;
    case Kind::rank_deficient: {
      const int place = static_cast<int>(r.columns.shuffle.place_of(j));
      if (place < r.count) break;
      const std::uint64_t at = static_cast<std::uint64_t>(j) * 4;
      const auto base = [&](std::uint64_t draw) {
        return static_cast<int>(
            r.columns.shuffle.at(r.draws.below(Purpose::column, at + draw, r.count)));
      };
      float pair[2];
      normal_pair(r.draws.bits(Purpose::column, at + 2), pair);
      column.first = base(0);
      column.second = base(1);
      column.weight = pair[0];
      break;
    }
    case Kind::near_rank: {
      const int quarter = r.n / 4;
      if (j < r.n - quarter) break;
      column.first = j - (r.n - quarter);
      column.second = j;
      column.weight = 1e-5f;
      break;
    }
    case Kind::clustered:
      if (static_cast<int>(r.columns.kind == 2 ? r.columns.shuffle.place_of(j) : j) >= r.n / 2)
        column.scale = 4 * static_cast<double>(FLT_EPSILON);
      break;
    case Kind::near_collinear:
      column.first = r.n;
      column.second = j;
      column.weight = static_cast<float>(r.scale);
      break;
    case Kind::zero_columns:
      column.zero = is_zero_column(r, j);
      break;
    case Kind::zero_tail:
      column.zero = j >= r.n - r.n / 4;
      break;
    case Kind::duplicate_columns:
      for (;;) {  // a copy of a copy is a copy of the first
        const int from = static_cast<int>(r.draws.below(Purpose::column, column.first, r.count));
        if (from >= column.first) break;
        column.first = from;
      }
      break;
    case Kind::diagonal:
      column.scale = power_of_ten(-6 * r.draws.uniform(Purpose::column, j));
      break;
    case Kind::tiny:
    case Kind::subnormal:
      column.scale = r.scale;
      break;
    default:
      break;
  }
  if (r.column_decades > 0)
    column.scale *= power_of_ten(-r.column_decades * j / at_least(1, r.n - 1));
  return column;
}

QR_BOTH float sign_of(const Recipe& r, std::uint64_t which) {
  return r.draws.bits(Purpose::sign, which) >> 63 ? 1.0f : -1.0f;
}

// One of the cosine transform's columns, rows shuffled and with signs.
QR_BOTH double orthogonal_entry(const Recipe& r, int i, int j) {
  const auto frequency =
      r.columns.shuffle.at(static_cast<std::uint32_t>(j % (r.m < r.n ? r.m : r.n)));
  const auto row = r.rows.shuffle.at(static_cast<std::uint32_t>(i));
  const std::uint32_t turn = (2 * row + 1) * frequency % (4u * r.m);
  const double angle = static_cast<double>(turn) / (2.0 * r.m);
#ifdef __CUDA_ARCH__
  const double cosine = cospi(angle);
#else
  const double cosine = std::cos(3.14159265358979323846 * angle);
#endif
  return sqrt((frequency == 0 ? 1.0 : 2.0) / r.m) * cosine * sign_of(r, i);
}

// An entry of the families that are formulas rather than noise.
QR_BOTH float formula_entry(const Recipe& r, const Column& column, int i) {
  const int j = column.index;
  switch (r.kind) {
    case Kind::identity:
      return i != j ? 0.0f : r.count == 1 ? sign_of(r, j) : 1.0f;
    case Kind::permutation:
      return static_cast<int>(r.columns.shuffle.at(j)) == i ? sign_of(r, j) : 0.0f;
    case Kind::orthogonal:
      return static_cast<float>(orthogonal_entry(r, i, j));
    case Kind::kahan:
      return i > j ? 0.0f
                   : static_cast<float>(pow(sin(r.scale), static_cast<double>(i)) *
                                        (i == j ? 1.0 : -cos(r.scale)));
    case Kind::vandermonde: {
      const double node = 2 * r.draws.uniform(Purpose::row, i) - 1;
      return static_cast<float>(pow(node, static_cast<double>(j)));
    }
    case Kind::hilbert:
      return static_cast<float>(1 / (static_cast<double>(i + j) + r.scale));
    default:  // zero, of either sign
      return sign_of(r, static_cast<std::uint64_t>(j) * r.m + i) * 0.0f;
  }
}

QR_BOTH bool is_formula(Kind kind) {
  return kind == Kind::identity || kind == Kind::permutation || kind == Kind::orthogonal ||
         kind == Kind::kahan || kind == Kind::vandermonde || kind == Kind::hilbert ||
         kind == Kind::zero;
}

// What is done to a finished normal entry, family by family.
QR_BOTH float shaped_entry(const Recipe& r, const Column& column, int i, float x) {
  const int j = column.index;
  switch (r.kind) {
    case Kind::row_graded:
      return static_cast<float>(x * power_of_ten(-r.decades * r.rows.at(i) / at_least(1, r.m - 1)));
    case Kind::band:
      return i - j <= r.count && j - i <= r.count ? x : 0.0f;
    case Kind::upper:
      return i <= j ? x : 0.0f;
    case Kind::diagonal:
      return i == j ? x : 0.0f;
    case Kind::zero_columns:
    case Kind::zero_tail:
      return column.zero ? 0.0f : x;
    case Kind::minus_zero: {
      if (j == r.count) return -0.0f;
      const auto at = static_cast<std::uint64_t>(j) * r.m + i;
      const std::uint32_t which = r.draws.below(Purpose::row, at, 4);
      return which == 0 ? -0.0f : which == 1 ? 0.0f : x;
    }
    case Kind::one_nan:
      return r.rare && j * r.m + i == r.count ? NAN : x;
    case Kind::one_inf:
      return r.rare && j * r.m + i == r.count ? sign_of(r, 0) * INFINITY : x;
    default:
      return x;
  }
}

// Rows 4 quad to 4 quad + 3 of a column. Those at and beyond m are made too; nobody keeps them.
QR_BOTH void make_quad(const Recipe& r, const Column& column, int quad, float* four) {
  if (is_formula(r.kind)) {
    for (int part = 0; part < 4; ++part)
      four[part] = 4 * quad + part < r.m ? formula_entry(r, column, 4 * quad + part) : 0.0f;
  } else {
    normal_quad(r.draws, column.first, quad, four);
    if (column.second >= 0) {
      float more[4];
      normal_quad(r.draws, column.second, quad, more);
      for (int part = 0; part < 4; ++part) four[part] += column.weight * more[part];
    }
    for (int part = 0; part < 4; ++part)
      if (4 * quad + part < r.m) four[part] = shaped_entry(r, column, 4 * quad + part, four[part]);
  }
  if (column.scale != 1)
    for (int part = 0; part < 4; ++part) four[part] = static_cast<float>(four[part] * column.scale);
}

}  // namespace batched_qr
