// Packed panels around one register tile: a block of B is copied into strips as wide as the tile, a
// block of A into strips as tall, so that the tile reads both in order. C is written or added to
// once a block of k. Edges are computed as whole tiles on zeros and copied out in part.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kWidth, 16, 8, 16);
KBEAM_KNOB(int, kRows, 8, 4, 6, 8, 12, 14);        // of a tile
KBEAM_KNOB(int, kColumns, 2, 1, 2, 3);             // vectors of a tile
KBEAM_KNOB(int, kDepth, 256, 128, 256, 384, 512);  // of a block
KBEAM_KNOB(int, kTall, 96, 48, 96, 192, 384);      // rows of a block of A
KBEAM_KNOB(int, kWide, 512, 256, 512, 1024);       // columns of a block of B
KBEAM_KNOB(int, kPrefetch, 0, 0, 4, 8);            // terms ahead, in the strip of A
KBEAM_REQUIRE(kRows* kColumns <= 28, "the tile fits into the vector registers");

namespace {

using V = kbeam::Vector<float, kWidth>;

struct Shape {
  std::int64_t m, n, k;
};

constexpr std::int64_t kTileWidth = kColumns * kWidth;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}
constexpr std::int64_t kPackedA = round_up(kTall, kRows) * kDepth;
constexpr std::int64_t kPackedB = round_up(kWide, kTileWidth) * kDepth;

struct Block {
  std::int64_t rows, columns, depth;
};

// Strips of kRows rows, term by term; rows beyond the last are zero.
void pack_a(const float* a, const Shape& s, const Block& size, float* to) {
  for (std::int64_t i = 0; i < size.rows; i += kRows) {
    const std::int64_t rows = std::min<std::int64_t>(kRows, size.rows - i);
    for (std::int64_t r = 0; r < kRows; ++r)
      for (std::int64_t l = 0; l < size.depth; ++l)
        to[l * kRows + r] = r < rows ? a[(i + r) * s.k + l] : 0.0f;
    to += kRows * size.depth;
  }
}

// Strips of kTileWidth columns, term by term; columns beyond the last are zero.
void pack_b(const float* b, const Shape& s, const Block& size, float* to) {
  for (std::int64_t j = 0; j < size.columns; j += kTileWidth) {
    const std::int64_t columns = std::min<std::int64_t>(kTileWidth, size.columns - j);
    for (std::int64_t l = 0; l < size.depth; ++l, to += kTileWidth) {
      std::copy_n(b + l * s.n + j, columns, to);
      std::fill(to + columns, to + kTileWidth, 0.0f);
    }
  }
}

struct Target {
  float* c;
  std::int64_t stride;
  std::int64_t rows, columns;  // of the tile that exist
  bool add;
};

void put_part(const V (&sums)[kRows][kColumns], const Target& target) {
  float tile[kRows][kTileWidth];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kColumns; ++v) kbeam::store(&tile[r][v * kWidth], sums[r][v]);
  for (std::int64_t r = 0; r < target.rows; ++r)
    for (std::int64_t j = 0; j < target.columns; ++j) {
      float& to = target.c[r * target.stride + j];
      to = target.add ? to + tile[r][j] : tile[r][j];
    }
}

void multiply_tile(const float* __restrict a, const float* __restrict b, std::int64_t depth,
                   const Target& target) {
  V sums[kRows][kColumns] = {};
  for (std::int64_t l = 0; l < depth; ++l, a += kRows, b += kTileWidth) {
    if constexpr (kPrefetch > 0) __builtin_prefetch(a + kPrefetch * kRows);
    V row[kColumns];
    for (int v = 0; v < kColumns; ++v) row[v] = kbeam::load<V>(b + v * kWidth);
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kColumns; ++v) sums[r][v] += a[r] * row[v];
  }
  if (target.rows < kRows || target.columns < kTileWidth) return put_part(sums, target);
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kColumns; ++v) {
      float* const to = target.c + r * target.stride + v * kWidth;
      kbeam::store(to, target.add ? kbeam::load<V>(to) + sums[r][v] : sums[r][v]);
    }
}

void multiply_packed(const float* a, const float* b, float* c, const Shape& s, const Block& size,
                     bool add) {
  for (std::int64_t j = 0; j < size.columns; j += kTileWidth)
    for (std::int64_t i = 0; i < size.rows; i += kRows)
      multiply_tile(a + i * size.depth, b + j * size.depth, size.depth,
                    {c + i * s.n + j, s.n, std::min<std::int64_t>(kRows, size.rows - i),
                     std::min<std::int64_t>(kTileWidth, size.columns - j), add});
}

// Rows [first, last) of one product.
void multiply_rows(const float* a, const float* b, float* c, const Shape& s, std::int64_t first,
                   std::int64_t last, float* packed) {
  float* const packed_b = packed;
  float* const packed_a = packed + kPackedB;
  for (std::int64_t j = 0; j < s.n; j += kWide)
    for (std::int64_t l = 0; l < s.k; l += kDepth) {
      Block size{0, std::min<std::int64_t>(kWide, s.n - j),
                 std::min<std::int64_t>(kDepth, s.k - l)};
      pack_b(b + l * s.n + j, s, size, packed_b);
      for (std::int64_t i = first; i < last; i += kTall) {
        size.rows = std::min<std::int64_t>(kTall, last - i);
        pack_a(a + i * s.k + l, s, size, packed_a);
        multiply_packed(packed_a, packed_b, c + i * s.n + j, s, size, l > 0);
      }
    }
}

// Items are slices of products: `slices` a product.
void multiply(kbeam::Range range, const float* a, const float* b, float* c, float* packed, Shape s,
              std::int64_t slices) {
  for (std::int64_t item = range.begin; item < range.end; ++item) {
    const std::int64_t product = item / slices, slice = item % slices;
    multiply_rows(a + product * s.m * s.k, b + product * s.k * s.n, c + product * s.m * s.n, s,
                  s.m * slice / slices, s.m * (slice + 1) / slices, packed);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Shape shape{c.dim(1), c.dim(2), a.dim(2)};
  const std::int64_t slices = c.dim(0) < plan.workers() ? plan.workers() : 1;
  plan.parallel_for(c.dim(0) * slices, 0, multiply, a, b, c,
                    plan.worker_scratch<float>(kPackedA + kPackedB), shape, slices);
}
