// The table of input families: how each is filled, and which exact changes keep a matrix inside its
// family. problem.toml says in words what each family is; the names must agree.
#pragma once

#include <cstddef>
#include <string_view>

#include "matrices.h"

namespace batched_qr {

// What `freshen` may do to a matrix of a family. All of it is exact.
struct Freshening {
  enum class Rows { keep, permute };
  enum class Columns { keep, flip_signs };
  Rows rows = Rows::permute;
  Columns columns = Columns::flip_signs;
  // Multiplied by 2^e with e drawn from [least_exponent, most_exponent].
  int least_exponent = 0;
  int most_exponent = 0;
};

struct Family {
  std::string_view name;
  void (*fill)(float* a, const Spot& spot, Random& random);
  Freshening freshening;
};

inline void fill_mixed(float* a, const Spot& spot, Random& random);

inline constexpr auto kPermute = Freshening::Rows::permute;
inline constexpr auto kKeep = Freshening::Rows::keep;
inline constexpr auto kFlip = Freshening::Columns::flip_signs;
inline constexpr auto kSame = Freshening::Columns::keep;

// Row order is kept where a permutation would leave the family; columns keep their sign where the
// sign is the point; scaling is left out where it would round (subnormal) or pass FLT_MAX / 4
// (huge).
inline constexpr Family kFamilies[] = {
    {"dense", fill_dense, {kPermute, kFlip, -3, 3}},
    {"scaled_dense", fill_scaled_dense, {kPermute, kFlip, -3, 3}},
    {"column_graded", fill_column_graded, {kPermute, kFlip, 0, 3}},
    {"row_graded", fill_row_graded, {kKeep, kFlip, 0, 3}},
    {"rank_deficient", fill_rank_deficient, {kPermute, kFlip, -3, 3}},
    {"near_rank", fill_near_rank, {kPermute, kSame, -3, 3}},
    {"clustered", fill_clustered, {kPermute, kFlip, -3, 3}},
    {"band", fill_band, {kKeep, kFlip, -3, 3}},
    {"near_collinear", fill_near_collinear, {kPermute, kFlip, -3, 3}},
    {"upper", fill_upper, {kKeep, kFlip, -3, 3}},
    {"identity", fill_identity, {kKeep, kFlip, 0, 0}},
    {"diagonal", fill_diagonal, {kKeep, kFlip, -3, 3}},
    {"permutation", fill_permutation, {kPermute, kFlip, 0, 0}},
    {"orthogonal", fill_orthogonal, {kPermute, kFlip, 0, 0}},
    {"zero", fill_zero, {kKeep, kFlip, 0, 0}},
    {"zero_columns", fill_zero_columns, {kPermute, kFlip, -3, 3}},
    {"duplicate_columns", fill_duplicate_columns, {kPermute, kSame, -3, 3}},
    {"kahan", fill_kahan, {kKeep, kFlip, -3, 3}},
    {"vandermonde", fill_vandermonde, {kPermute, kSame, 0, 0}},
    {"hilbert", fill_hilbert, {kPermute, kFlip, -3, 3}},
    {"tiny", fill_tiny, {kPermute, kFlip, 0, 3}},
    {"huge", fill_huge, {kPermute, kFlip, 0, 0}},
    {"subnormal", fill_subnormal, {kPermute, kFlip, 0, 0}},
    {"minus_zero", fill_minus_zero, {kPermute, kFlip, -3, 3}},
    {"one_nan", fill_one_nan, {kPermute, kFlip, -3, 3}},
    {"one_inf", fill_one_inf, {kPermute, kFlip, -3, 3}},
    {"mixed", fill_mixed, {kKeep, kFlip, 0, 0}},
    // The public contest's own; no members of `mixed`.
    {"dense_cond1", fill_dense_cond1, {kPermute, kFlip, -3, 3}},
    {"dense_cond2", fill_dense_cond2, {kPermute, kFlip, -3, 3}},
    {"zero_tail", fill_zero_tail, {kPermute, kFlip, -3, 3}},
    {"clustered_tail", fill_clustered_tail, {kPermute, kFlip, -3, 3}},
    {"contest_mixed", fill_contest_mixed, {kKeep, kSame, -3, 3}},
};

// Where `mixed` stands in the table: those before it are its members.
inline constexpr std::size_t kMixed = 26;
static_assert(kFamilies[kMixed].name == "mixed");

// A dense batch with rare hard members at random positions: one at least, and one in eight of the
// others. The dense members are those of the dense family for the same seed.
inline void fill_mixed(float* a, const Spot& spot, Random& random) {
  constexpr std::uint64_t kOthers = kMixed - 1;  // not dense
  Random kind(~spot.seed, static_cast<std::uint64_t>(spot.index));
  const bool hard = chosen(spot) || kind.below(8) == 0;
  kFamilies[hard ? 1 + kind.below(kOthers) : 0].fill(a, spot, random);
}

inline const Family* find_family(std::string_view name) {
  for (const Family& family : kFamilies)
    if (family.name == name) return &family;
  return nullptr;
}

}  // namespace batched_qr
