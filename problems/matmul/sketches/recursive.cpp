// Cache-oblivious: the longest side of the product is halved until what is left fits the nearest
// cache, whatever its size; the rest is register tiles. Halving k adds the second half to the
// first.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kWidth, 16, 8, 16);
KBEAM_KNOB(int, kRows, 8, 4, 6, 8, 12);    // of a tile
KBEAM_KNOB(int, kColumns, 2, 1, 2, 3, 4);  // vectors of a tile
KBEAM_KNOB(int, kLeaf, 96, 48, 96, 192);   // the longest side that is not halved
KBEAM_REQUIRE(kRows* kColumns <= 28, "the tile fits into the vector registers");

namespace {

using V = kbeam::Vector<float, kWidth>;

struct Shape {
  std::int64_t m, n, k;
};

struct Edge {
  bool add;              // to what C holds; else C is written
  std::int64_t columns;  // of a part of a vector
};

// The first `count` values of a vector that is not all there.
V load_part(const float* from, std::int64_t count) {
  float lanes[kWidth] = {};
  for (std::int64_t i = 0; i < count; ++i) lanes[i] = from[i];
  return kbeam::load<V>(lanes);
}
void store_part(float* to, V value, std::int64_t count) {
  float lanes[kWidth];
  kbeam::store(lanes, value);
  for (std::int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

struct Block {
  std::int64_t rows, columns, depth;
};

// C[kTall][kVectors vectors] (+)= A B over `depth` terms, both read where they lie. With kPart,
// only the first `columns` columns exist, in one vector.
template <int kTall, int kVectors, bool kPart>
void multiply_tile(const float* a, const float* b, float* c, const Shape& s, std::int64_t depth,
                   Edge edge) {
  V sums[kTall][kVectors] = {};
  for (std::int64_t l = 0; l < depth; ++l) {
    V row[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const float* const from = b + l * s.n + v * kWidth;
      row[v] = kPart ? load_part(from, edge.columns) : kbeam::load<V>(from);
    }
    for (int r = 0; r < kTall; ++r)
      for (int v = 0; v < kVectors; ++v) sums[r][v] += a[r * s.k + l] * row[v];
  }
  for (int r = 0; r < kTall; ++r)
    for (int v = 0; v < kVectors; ++v) {
      float* const to = c + r * s.n + v * kWidth;
      if constexpr (kPart) {
        const V old = edge.add ? load_part(to, edge.columns) : V{};
        store_part(to, old + sums[r][v], edge.columns);
      } else {
        kbeam::store(to, edge.add ? kbeam::load<V>(to) + sums[r][v] : sums[r][v]);
      }
    }
}

// Rows [0, rows) of one strip of columns: whole tiles, then one shorter tile.
template <int kTall, int kVectors, bool kPart>
void multiply_rest(const float* a, const float* b, float* c, const Shape& s, std::int64_t rows,
                   std::int64_t depth, Edge edge) {
  if constexpr (kTall > 0) {
    if (rows == kTall)
      multiply_tile<kTall, kVectors, kPart>(a, b, c, s, depth, edge);
    else
      multiply_rest<kTall - 1, kVectors, kPart>(a, b, c, s, rows, depth, edge);
  }
}

template <int kVectors, bool kPart>
void multiply_strip(const float* a, const float* b, float* c, const Shape& s, std::int64_t rows,
                    std::int64_t depth, Edge edge) {
  std::int64_t i = 0;
  for (; i + kRows <= rows; i += kRows)
    multiply_tile<kRows, kVectors, kPart>(a + i * s.k, b, c + i * s.n, s, depth, edge);
  multiply_rest<kRows - 1, kVectors, kPart>(a + i * s.k, b, c + i * s.n, s, rows - i, depth, edge);
}

// Strips of kColumns vectors, then of one, then a part of one.
void multiply_block(const float* a, const float* b, float* c, const Shape& s, Block size,
                    bool add) {
  std::int64_t j = 0;
  for (; j + kColumns * kWidth <= size.columns; j += kColumns * kWidth)
    multiply_strip<kColumns, false>(a, b + j, c + j, s, size.rows, size.depth, {add, kWidth});
  for (; j + kWidth <= size.columns; j += kWidth)
    multiply_strip<1, false>(a, b + j, c + j, s, size.rows, size.depth, {add, kWidth});
  if (j < size.columns)
    multiply_strip<1, true>(a, b + j, c + j, s, size.rows, size.depth, {add, size.columns - j});
}

// About half of `length`, in whole steps where it is longer than one.
std::int64_t half_of(std::int64_t length, std::int64_t step) {
  const std::int64_t half = (length / 2 + step - 1) / step * step;
  return half < length ? half : length / 2;
}

void multiply_halves(const float* a, const float* b, float* c, const Shape& s, Block size,
                     bool add) {
  const std::int64_t longest = std::max({size.rows, size.columns, size.depth});
  if (longest <= kLeaf) return multiply_block(a, b, c, s, size, add);
  Block one = size, other = size;
  if (size.depth == longest) {
    one.depth = half_of(size.depth, 16);
    other.depth -= one.depth;
    multiply_halves(a, b, c, s, one, add);
    multiply_halves(a + one.depth, b + one.depth * s.n, c, s, other, true);
  } else if (size.rows == longest) {
    one.rows = half_of(size.rows, kRows);
    other.rows -= one.rows;
    multiply_halves(a, b, c, s, one, add);
    multiply_halves(a + one.rows * s.k, b, c + one.rows * s.n, s, other, add);
  } else {
    one.columns = half_of(size.columns, kColumns * kWidth);
    other.columns -= one.columns;
    multiply_halves(a, b, c, s, one, add);
    multiply_halves(a, b + one.columns, c + one.columns, s, other, add);
  }
}

// Items are slices of products: `slices` a product.
void multiply(kbeam::Range range, const float* a, const float* b, float* c, Shape s,
              std::int64_t slices) {
  for (std::int64_t item = range.begin; item < range.end; ++item) {
    const std::int64_t product = item / slices;
    const std::int64_t first = s.m * (item % slices) / slices;
    const std::int64_t rows = s.m * (item % slices + 1) / slices - first;
    if (rows > 0)
      multiply_halves(a + (product * s.m + first) * s.k, b + product * s.k * s.n,
                      c + (product * s.m + first) * s.n, s, {rows, s.n, s.k}, false);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Shape shape{c.dim(1), c.dim(2), a.dim(2)};
  const std::int64_t slices = c.dim(0) < plan.workers() ? plan.workers() : 1;
  plan.parallel_for(c.dim(0) * slices, 0, multiply, a, b, c, shape, slices);
}
