// Left-looking blocked QR with columns in lanes: the matrix is transposed into strips of kLanes
// columns, one row a vector. A row update needs no horizontal sum, the dots of a reflector with all
// later columns, its own norm and its entries of V'V come from one sweep, and both block products
// are broadcast-times-row kernels in registers.
#include <immintrin.h>
#include <kbeam/candidate.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

KBEAM_KNOB(int, kLanes, 16, 4, 8, 16);      // columns a strip, and reflectors a block
KBEAM_KNOB(int, kStrips, 2, 1, 2, 3, 4);    // strips that are updated together
KBEAM_KNOB(int, kReflectors, 8, 4, 8, 16);  // register tile of W = V'A: this many rows by kStrips
KBEAM_KNOB(int, kRows, 4, 1, 2, 4, 6, 8);   // register tile of A -= V W: this many rows by kStrips
KBEAM_KNOB(int, kPrefetch, 0, 0, 1, 2);  // fetch what comes: 1 the next strips, 2 the next matrix
KBEAM_KNOB(int, kStream, 0, 0, 1);       // 1: write H around the cache
KBEAM_REQUIRE(kReflectors <= kLanes, "a register tile holds at most one block of reflectors");
KBEAM_REQUIRE(32 >= kReflectors * kStrips, "the register tile of W = V'A has to fit the registers");
KBEAM_REQUIRE(24 >= kRows * kStrips, "the register tile of A -= V W has to fit the registers");

namespace {

using Lane = kbeam::Vector<float, kLanes>;
using LaneBits = kbeam::Vector<std::int32_t, kLanes>;

constexpr int kTile = kLanes * kLanes;
constexpr int kChunk = 128;  // rows of one partial sum of V'A: longer ones leave L1 and lose digits
constexpr int kMatrices = 2;  // small matrices whose strips are factored side by side
// Columns are used as they are while their sums of squares are in the first range, and a reflector
// is made without rescaling while that of its column's tail is in the second: then no product over-
// or underflows to any effect.
constexpr float kColumnLow = 0x1p-60f, kColumnHigh = 0x1p60f;
constexpr float kTailLow = 0x1p-80f, kTailHigh = 0x1p80f;

struct Shape {
  int m, n, k;
  int strips;
};

// What one matrix works on.
struct Matrix {
  const float* a;
  const float* a_end;  // of the whole range
  float* h;
  float* tau;
  float* strip;   // strips x m x kLanes: X below and on the diagonal blocks, R above them
  float* factor;  // kLanes a strip: V = X diag(factor), so that V itself is never written here
  float* gram;    // a block's lower(V'V), kTile a strip
  float* scales;  // the powers of two that the columns were multiplied by, kLanes a strip
  float* top;     // R of the diagonal block of the strip in work
  bool scaled;
};

// As kbeam::load and store, but the compiler folds these into its arithmetic more often.
using LaneInMemory [[gnu::aligned(4), gnu::may_alias]] = Lane;
Lane get(const float* from) {
  return *reinterpret_cast<const LaneInMemory*>(from);
}
void store(float* to, Lane value) {
  *reinterpret_cast<LaneInMemory*>(to) = value;
}
LaneBits bits(Lane x) {
  return std::bit_cast<LaneBits>(x);
}
Lane keep(LaneBits mask, Lane x) {
  return std::bit_cast<Lane>(mask & bits(x));
}
Lane select(LaneBits mask, Lane yes, Lane no) {
  return std::bit_cast<Lane>((mask & bits(yes)) | (~mask & bits(no)));
}
Lane magnitude(Lane x) {
  return std::bit_cast<Lane>(bits(x) & INT32_MAX);
}

constexpr LaneBits lane_numbers() {
  LaneBits numbers{};
  for (int l = 0; l < kLanes; ++l) numbers[l] = l;
  return numbers;
}

// Powers of two that bring `most` to [1, 4), exactly; 1 for zero, infinite and NaN lanes.
Lane power_to_unit(Lane most) {
  LaneBits exponent = 254 - (bits(most) >> 23);
  exponent = exponent < 1 ? LaneBits{} + 1 : exponent;
  const Lane power = std::bit_cast<Lane>(exponent << 23);
  const LaneBits usable = (most > 0.0f) & (most < __builtin_inff());
  return select(usable, power, Lane{} + 1.0f);
}

bool any(LaneBits mask) {
  std::int32_t some = 0;
  for (int l = 0; l < kLanes; ++l) some |= mask[l];
  return some != 0;
}

// --- the plain path: sums in double precision; right for every input, fast for none ---

double dot_below(const float* v, const float* x, int above, int m) {
  double sum = 0;
  for (int i = above + 1; i < m; ++i) sum += static_cast<double>(v[i]) * x[i];
  return sum;
}

void factor_plain(const float* a, float* h, float* tau, const Shape& shape) {
  const int m = shape.m;
  std::copy_n(a, std::int64_t{m} * shape.n, h);
  for (int j = 0; j < shape.k; ++j) {
    float* v = h + std::int64_t{j} * m;
    const double tail = dot_below(v, v, j, m), alpha = v[j];
    tau[j] = 0;
    if (tail == 0) continue;
    const double beta = -std::copysign(std::sqrt(tail + alpha * alpha), alpha);
    for (int i = j + 1; i < m; ++i) v[i] = static_cast<float>(v[i] / (alpha - beta));
    v[j] = static_cast<float>(beta);
    // From the rounded v, so that I - tau v v' is orthogonal whatever the rounding did.
    tau[j] = static_cast<float>(2 / (1 + dot_below(v, v, j, m)));
    for (int c = j + 1; c < shape.n; ++c) {
      float* x = h + std::int64_t{c} * m;
      const double w = tau[j] * (x[j] + dot_below(v, x, j, m));
      x[j] = static_cast<float>(x[j] - w);
      for (int i = j + 1; i < m; ++i) x[i] = static_cast<float>(x[i] - w * v[i]);
    }
  }
}

// --- packing ---

// log2(kLanes) perfect shuffles transpose a kLanes x kLanes tile.
[[gnu::always_inline]] inline void transpose(Lane (&tile)[kLanes]) {
  constexpr int kHalf = kLanes / 2;
  for (int stage = 1; stage < kLanes; stage *= 2) {
    Lane next[kLanes];
    [&]<int... i>(std::integer_sequence<int, i...>) {
#pragma GCC unroll 16
      for (int r = 0; r < kHalf; ++r) {
        next[2 * r] =
            __builtin_shufflevector(tile[r], tile[r + kHalf], (i / 2 + i % 2 * kLanes)...);
        next[2 * r + 1] =
            __builtin_shufflevector(tile[r], tile[r + kHalf], (kHalf + i / 2 + i % 2 * kLanes)...);
      }
    }
    (std::make_integer_sequence<int, kLanes>{});
#pragma GCC unroll 16
    for (int r = 0; r < kLanes; ++r) tile[r] = next[r];
  }
}

float* strip_of(const Matrix& matrix, const Shape& shape, int p) {
  return matrix.strip + std::int64_t{p} * shape.m * kLanes;
}

// Multiplies the columns of a strip by powers of two where their norms are out of the range that is
// safe.
[[gnu::noinline]] void rescale(Matrix& matrix, float* strip, float* scales, int m) {
  Lane most{};
  for (int i = 0; i < m; ++i) {
    const Lane size = magnitude(get(strip + i * kLanes));
    most = select(size <= most, most, size);  // a NaN wins
  }
  const Lane power = power_to_unit(most);
  for (int i = 0; i < m; ++i) store(strip + i * kLanes, get(strip + i * kLanes) * power);
  store(scales, power);
  matrix.scaled = true;
}

void pack_strip(Matrix& matrix, const Shape& shape, int p) {
  const int m = shape.m, columns = std::min(kLanes, shape.n - p * kLanes);
  const float* a = matrix.a + std::int64_t{p} * kLanes * m;
  float* strip = strip_of(matrix, shape, p);
  Lane square{};
  if (columns == kLanes && m >= kLanes) {
    for (int r = 0; r < m; r += kLanes) {
      const int i = std::min(r, m - kLanes);  // the last tile may overlap the one before
      Lane tile[kLanes];
#pragma GCC unroll 16
      for (int c = 0; c < kLanes; ++c) tile[c] = get(a + std::int64_t{c} * m + i);
      transpose(tile);
#pragma GCC unroll 16
      for (int c = 0; c < kLanes; ++c) {
        store(strip + (i + c) * kLanes, tile[c]);
        square += tile[c] * tile[c];
      }
    }
  } else {
    for (int i = 0; i < m; ++i) {
      Lane row{};
      for (int c = 0; c < columns; ++c) row[c] = a[std::int64_t{c} * m + i];
      store(strip + i * kLanes, row);
      square += row * row;
    }
  }
  float* scales = matrix.scales + p * kLanes;
  store(scales, Lane{} + 1.0f);
  // A padding column is all zeros and may be rescaled by one with the others.
  const LaneBits real = lane_numbers() < columns;
  if (any(real & ~((square > kColumnLow) & (square < kColumnHigh))))
    rescale(matrix, strip, scales, m);
}

template <int kWidth>
void write_around_cache(float* to, kbeam::Vector<float, kWidth> value) {
#if defined(__AVX512F__)
  if constexpr (kWidth == 16) return _mm512_stream_ps(to, value);
#endif
#if defined(__AVX__)
  if constexpr (kWidth == 8) return _mm256_stream_ps(to, value);
#endif
  store(to, value);
}

// Row i of H in strip p: V left of the diagonal, R from it on, with the columns' own scales again.
Lane row_of_h(const Matrix& matrix, const float* strip, int p, int i) {
  const Lane row = get(strip + i * kLanes);
  const Lane v = row * get(matrix.factor + p * kLanes);
  const int l = i - p * kLanes;
  if (l >= kLanes) return v;
  const Lane r = l < 0 ? row : get(matrix.top + l * kLanes);
  const Lane scaled = matrix.scaled ? r / get(matrix.scales + p * kLanes) : r;
  return select(lane_numbers() < l, v, scaled);
}

void unpack_strip(const Matrix& matrix, const Shape& shape, int p) {
  const int m = shape.m, columns = std::min(kLanes, shape.n - p * kLanes);
  const float* strip = strip_of(matrix, shape, p);
  float* h = matrix.h + std::int64_t{p} * kLanes * m;
  if (columns < kLanes || m < kLanes) {
    for (int i = 0; i < m; ++i) {
      const Lane row = row_of_h(matrix, strip, p, i);
      for (int c = 0; c < columns; ++c) h[std::int64_t{c} * m + i] = row[c];
    }
    return;
  }
  const bool around =
      kStream == 1 && m % kLanes == 0 && reinterpret_cast<std::uintptr_t>(h) % sizeof(Lane) == 0;
  const Lane factor = get(matrix.factor + p * kLanes);
  for (int r = 0; r < m; r += kLanes) {
    const int i = std::min(r, m - kLanes);
    Lane tile[kLanes];
    if (i >= (p + 1) * kLanes) {
#pragma GCC unroll 16
      for (int c = 0; c < kLanes; ++c) tile[c] = get(strip + (i + c) * kLanes) * factor;
    } else if (i + kLanes <= p * kLanes && !matrix.scaled) {
#pragma GCC unroll 16
      for (int c = 0; c < kLanes; ++c) tile[c] = get(strip + (i + c) * kLanes);
    } else {
      for (int c = 0; c < kLanes; ++c) tile[c] = row_of_h(matrix, strip, p, i + c);
    }
    transpose(tile);
#pragma GCC unroll 16
    for (int c = 0; c < kLanes; ++c)
      if (around)
        write_around_cache<kLanes>(h + std::int64_t{c} * m + i, tile[c]);
      else
        store(h + std::int64_t{c} * m + i, tile[c]);
  }
}

// --- one block of reflectors on a group of strips ---

// W[r] += sum over rows of v[row][r] * x[row], for kReflectors values of r at a time.
template <int kCount>
void block_dots(const float* v, const float* x, std::int64_t stride, int rows, float* w) {
  for (int r0 = 0; r0 < kLanes; r0 += kReflectors) {
    Lane sum[kReflectors][kCount] = {};
    for (int i = 0; i < rows; ++i) {
      Lane row[kCount];
#pragma GCC unroll 4
      for (int s = 0; s < kCount; ++s) row[s] = get(x + s * stride + i * kLanes);
#pragma GCC unroll 16
      for (int r = 0; r < kReflectors; ++r)
#pragma GCC unroll 4
        for (int s = 0; s < kCount; ++s) sum[r][s] += v[i * kLanes + r0 + r] * row[s];
    }
#pragma GCC unroll 16
    for (int r = 0; r < kReflectors; ++r)
#pragma GCC unroll 4
      for (int s = 0; s < kCount; ++s) {
        float* total = w + (s * kLanes + r0 + r) * kLanes;
        store(total, get(total) + sum[r][s]);
      }
  }
}

// W <- T'W without T, for V = X diag(factor): w_l = tau_l (factor_l w_l - sum over k < l of
// (v_k'v_l) w_k), and what multiplies X is factor_l w_l again. The strips go side by side, because
// each of them waits for every w_l.
template <int kCount>
void solve(const float* gram, const float* tau, const float* factor, float* w, int count) {
  Lane value[kLanes][kCount];
#pragma GCC unroll 16
  for (int l = 0; l < kLanes; ++l)
#pragma GCC unroll 4
    for (int s = 0; s < kCount; ++s) value[l][s] = get(w + (s * kLanes + l) * kLanes) * factor[l];
#pragma GCC unroll 16
  for (int l = 0; l < kLanes; ++l) {
#pragma GCC unroll 4
    for (int s = 0; s < kCount; ++s) value[l][s] = l < count ? value[l][s] * tau[l] : Lane{};
#pragma GCC unroll 16
    for (int t = l + 1; t < kLanes; ++t)
#pragma GCC unroll 4
      for (int s = 0; s < kCount; ++s) value[t][s] -= gram[t * kLanes + l] * value[l][s];
#pragma GCC unroll 4
    for (int s = 0; s < kCount; ++s) store(w + (s * kLanes + l) * kLanes, value[l][s] * factor[l]);
  }
}

// x[row] -= sum over r of v[row][r] * W[r], for kHeight rows.
template <int kHeight, int kCount>
[[gnu::always_inline]] inline void update_rows(const float* v, float* x, std::int64_t stride,
                                               const float* w) {
  Lane row[kHeight][kCount];
#pragma GCC unroll 8
  for (int i = 0; i < kHeight; ++i)
#pragma GCC unroll 4
    for (int s = 0; s < kCount; ++s) row[i][s] = get(x + s * stride + i * kLanes);
#pragma GCC unroll 4
  for (int r = 0; r < kLanes; ++r) {
    Lane coefficient[kCount];
#pragma GCC unroll 4
    for (int s = 0; s < kCount; ++s) coefficient[s] = get(w + (s * kLanes + r) * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kHeight; ++i)
#pragma GCC unroll 4
      for (int s = 0; s < kCount; ++s) row[i][s] -= v[i * kLanes + r] * coefficient[s];
  }
#pragma GCC unroll 8
  for (int i = 0; i < kHeight; ++i)
#pragma GCC unroll 4
    for (int s = 0; s < kCount; ++s) store(x + s * stride + i * kLanes, row[i][s]);
}

template <int kCount>
void update(const float* v, float* x, std::int64_t stride, int rows, const float* w) {
  int i = 0;
  for (; i + kRows <= rows; i += kRows)
    update_rows<kRows, kCount>(v + i * kLanes, x + i * kLanes, stride, w);
  for (; i < rows; ++i) update_rows<1, kCount>(v + i * kLanes, x + i * kLanes, stride, w);
}

// Applies the reflectors of strips [from, to) to kCount strips from p on.
template <int kCount>
void apply_blocks(const Matrix& matrix, const Shape& shape, int from, int to, int p) {
  const std::int64_t stride = std::int64_t{shape.m} * kLanes;
  float* x = strip_of(matrix, shape, p);
  alignas(64) float w[2][kCount * kTile];
  const auto dots = [&](int q, int i) {
    block_dots<kCount>(strip_of(matrix, shape, q) + i * kLanes, x + i * kLanes, stride,
                       std::min(kChunk, shape.m - i), w[q % 2]);
  };
  for (int q = from; q < to; ++q) {
    const int first = q * kLanes, next = std::min(first + kLanes, shape.m);
    const float* v = strip_of(matrix, shape, q);
    if (q == from) {
      std::fill_n(w[q % 2], kCount * kTile, 0.0f);
      for (int i = first; i < shape.m; i += kChunk) dots(q, i);
    }
    solve<kCount>(matrix.gram + q * kTile, matrix.tau + first, matrix.factor + first, w[q % 2],
                  std::min(kLanes, shape.k - first));
    if (q + 1 == to) {
      update<kCount>(v + first * kLanes, x + first * kLanes, stride, shape.m - first, w[q % 2]);
      continue;
    }
    // What a chunk of rows has to do with this block and the next, while it is in L1.
    std::fill_n(w[(q + 1) % 2], kCount * kTile, 0.0f);
    update<kCount>(v + first * kLanes, x + first * kLanes, stride, next - first, w[q % 2]);
    for (int i = next; i < shape.m; i += kChunk) {
      update<kCount>(v + i * kLanes, x + i * kLanes, stride, std::min(kChunk, shape.m - i),
                     w[q % 2]);
      dots(q + 1, i);
    }
  }
}

void apply_blocks_to(const Matrix& matrix, const Shape& shape, int from, int to, int p, int count) {
  [&]<int... s>(std::integer_sequence<int, s...>) {
    ((count == s + 1 ? apply_blocks<s + 1>(matrix, shape, from, to, p) : void()), ...);
  }
  (std::make_integer_sequence<int, kStrips>{});
}

// --- the reflectors of one strip ---

// The dots of lane `l` with every lane over rows [from, m).
Lane pivot_dots(const float* strip, int l, int from, int m) {
  Lane sum[4] = {};
  int i = from;
  for (; i + 4 <= m; i += 4)
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u)
      sum[u] += strip[(i + u) * kLanes + l] * get(strip + (i + u) * kLanes);
  for (; i < m; ++i) sum[0] += strip[i * kLanes + l] * get(strip + i * kLanes);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

struct Reflector {
  float beta, tau;
  float scale;  // v = x * scale below the diagonal
  float pivot;  // 1 / scale
};

Reflector reflector_from(float alpha, float tail) {
  const float beta = -std::copysign(std::sqrt(tail + alpha * alpha), alpha);
  return {beta, (beta - alpha) / beta, 1 / (alpha - beta), alpha - beta};
}

// The tail's sum of squares left the safe range: rescales the column by a power of two, which is
// exact.
[[gnu::noinline]] Reflector reflector_rescaled(float* strip, int l, int j, int m, Lane& dots) {
  Lane tail_most{};
  for (int i = j + 1; i < m; ++i) {
    const Lane size = magnitude(get(strip + i * kLanes));
    tail_most = select(size <= tail_most, tail_most, size);
  }
  const float alpha = strip[j * kLanes + l];
  if (tail_most[l] == 0) return {alpha, 0, 0, 0};  // H = I, and the diagonal keeps its sign
  Lane most{};
  most[l] = std::fabs(alpha) <= tail_most[l] ? tail_most[l] : std::fabs(alpha);
  const Lane power = power_to_unit(most);
  for (int i = j + 1; i < m; ++i) store(strip + i * kLanes, get(strip + i * kLanes) * power);
  dots = pivot_dots(strip, l, j + 1, m);
  Reflector r = reflector_from(alpha * power[l], dots[l]);
  r.beta /= power[l];
  return r;
}

// Fetches memory in small bites, so that it comes in under arithmetic.
class Fetcher {
 public:
  // What stands where strip p stands, some strips or matrices further on.
  void aim(const Matrix& matrix, const Shape& shape, int p, int matrices) {
    const std::int64_t strip = std::int64_t{kLanes} * shape.m;
    const std::int64_t elements = std::int64_t{shape.m} * shape.n;
    // Beyond the end of this matrix comes the next of those side by side, which is there already.
    const std::int64_t beyond = p + kStrips < shape.strips ? 0 : (matrices - 1) * elements;
    const std::int64_t distance = kPrefetch == 1 ? kStrips * strip + beyond : matrices * elements;
    const std::int64_t last = matrix.a_end - matrix.a - kLine;
    next_ = matrix.a +
            std::clamp<std::int64_t>(p * strip + distance, 0, std::max<std::int64_t>(last, 0));
    last_ = matrix.a + std::clamp<std::int64_t>((p + 1) * strip + distance - kLine, 0,
                                                std::max<std::int64_t>(last, 0));
  }
  void step() {
    if (kPrefetch == 0) return;
    __builtin_prefetch(next_, 0, 2);
    next_ = std::min(next_ + kLine, last_);
  }

 private:
  static constexpr int kLine = 16;
  const float* next_ = nullptr;
  const float* last_ = nullptr;
};

// Applies reflector l to the later lanes of rows [j + 1, m) and returns the dots of lane l + 1
// below row j + 1.
Lane sweep(float* strip, Lane coefficient, int l, int j, int m, Fetcher& fetcher) {
  const LaneBits next = LaneBits{} + (l + 1);
  const auto row_step = [&](float* at) {
    const Lane row = get(at) - at[l] * coefficient;
    store(at, row);
    return row;
  };
  const auto dot_step = [&](float* at, Lane& sum) {
    const Lane row = row_step(at);
    sum += __builtin_shuffle(row, next) * row;
  };
  if (j + 1 < m) row_step(strip + (j + 1) * kLanes);
  Lane sum[4] = {};
  int i = j + 2;
  Fetcher fetch = fetcher;
  for (; i + 4 <= m; i += 4) {
    fetch.step();
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) dot_step(strip + (i + u) * kLanes, sum[u]);
  }
  fetcher = fetch;
  for (; i < m; ++i) dot_step(strip + i * kLanes, sum[0]);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Moves R of the diagonal block to `top` and leaves X there, its diagonal and zeros included.
void finish_strip(const Matrix& matrix, float* strip, Lane pivots, int first, int count) {
  for (int l = 0; l < count; ++l) {
    float* at = strip + (first + l) * kLanes;
    const Lane row = get(at);
    store(matrix.top + l * kLanes, row);
    const Lane diagonal = keep(lane_numbers() == l, pivots);
    store(at, select(lane_numbers() < l, row, diagonal));
  }
}

// A strip that is being factored.
struct Panel {
  float* strip;
  Lane dots;           // of the next reflector's column with every lane
  Lane scale, pivots;  // of the reflectors made
  Fetcher fetcher;
};

// Makes reflector l of strip p. Returns what multiplies its column in the update of every lane.
Lane make_reflector(const Matrix& matrix, const Shape& shape, Panel& panel, int p, int l) {
  const int j = p * kLanes + l;
  float* head = panel.strip + j * kLanes;
  alignas(64) float dot[kLanes];
  store(dot, panel.dots);
  const float alpha = head[l], tail = dot[l];
  Reflector r{alpha, 0, 0, 0};
  if (tail > kTailLow && tail + alpha * alpha < kTailHigh)
    r = reflector_from(alpha, tail);
  else if (j + 1 < shape.m)
    r = reflector_rescaled(panel.strip, l, j, shape.m, panel.dots);
  // v'x for every lane: later ones give W, earlier ones V'V.
  const Lane product = get(head) + r.scale * panel.dots;
  const Lane w = keep(lane_numbers() > l, r.tau * product);
  store(matrix.gram + p * kTile + l * kLanes, keep(lane_numbers() < l, product * panel.scale));
  const LaneBits own = lane_numbers() == l;
  store(head, select(own, Lane{} + r.beta, get(head) - w));
  panel.scale = select(own, Lane{} + r.scale, panel.scale);
  panel.pivots = select(own, Lane{} + r.pivot, panel.pivots);
  matrix.tau[j] = r.tau;
  return r.scale * w;
}

// Factors strip p of kCount matrices, whose chains of reflectors do not wait for each other.
template <int kCount>
void factor_strips(Matrix* matrix, const Shape& shape, int p) {
  const int first = p * kLanes, count = std::min(kLanes, shape.k - first);
  Panel panel[kCount];
  for (int b = 0; b < kCount; ++b) {
    panel[b].strip = strip_of(matrix[b], shape, p);
    panel[b].dots = pivot_dots(panel[b].strip, 0, first + 1, shape.m);
    panel[b].scale = panel[b].pivots = Lane{};
    panel[b].fetcher.aim(matrix[b], shape, p, kCount);
  }
  for (int l = 0; l < count; ++l) {
    Lane coefficient[kCount];
#pragma GCC unroll 2
    for (int b = 0; b < kCount; ++b)
      coefficient[b] = make_reflector(matrix[b], shape, panel[b], p, l);
    if (l + 1 < kLanes)
#pragma GCC unroll 2
      for (int b = 0; b < kCount; ++b)
        panel[b].dots =
            sweep(panel[b].strip, coefficient[b], l, first + l, shape.m, panel[b].fetcher);
  }
  for (int b = 0; b < kCount; ++b) {
    store(matrix[b].factor + first, panel[b].scale);
    finish_strip(matrix[b], panel[b].strip, panel[b].pivots, first, count);
  }
}

template <int kCount>
void factor_matrices(Matrix* matrix, const Shape& shape) {
  const int blocks = (shape.k + kLanes - 1) / kLanes;
  for (int p = 0; p < shape.strips; p += kStrips) {
    const int width = std::min(kStrips, shape.strips - p);
    // Left-looking: bring the group up to date with everything to its left.
    for (int b = 0; b < kCount; ++b) {
      for (int s = 0; s < width; ++s) pack_strip(matrix[b], shape, p + s);
      apply_blocks_to(matrix[b], shape, 0, std::min(p, blocks), p, width);
    }
    for (int s = 0; s < width; ++s) {
      const bool reflects = p + s < blocks;
      if (reflects) factor_strips<kCount>(matrix, shape, p + s);
      for (int b = 0; b < kCount; ++b) {
        if (reflects && s + 1 < width)
          apply_blocks_to(matrix[b], shape, p + s, p + s + 1, p + s + 1, width - s - 1);
        unpack_strip(matrix[b], shape, p + s);
      }
    }
  }
}

// Floats of scratch a matrix: strips, gram, factor and scales of every strip, and one block for R.
std::int64_t scratch_floats(const Shape& shape) {
  return std::int64_t{shape.strips} * (shape.m * kLanes + kTile + 2 * kLanes) + kTile;
}

// Matrices that are factored side by side; at n = 256 it gained nothing.
int side_by_side(const Shape& shape) {
  return std::int64_t{shape.m} * shape.n <= 160 * 160 ? kMatrices : 1;
}

Matrix matrix_at(std::int64_t at, kbeam::Range range, const float* a, float* h, float* tau,
                 float* scratch, const Shape& shape) {
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  Matrix matrix{};
  matrix.a = a + at * elements;
  matrix.a_end = a + range.end * elements;
  matrix.h = h + at * elements;
  matrix.tau = tau + at * shape.k;
  matrix.strip = scratch;
  matrix.gram = matrix.strip + std::int64_t{shape.strips} * shape.m * kLanes;
  matrix.factor = matrix.gram + shape.strips * kTile;
  matrix.scales = matrix.factor + shape.strips * kLanes;
  matrix.top = matrix.scales + shape.strips * kLanes;
  return matrix;
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, float* scratch, Shape shape) {
  constexpr int kTiny = 8;  // up to this size the plain path is more accurate, and fast enough
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  if (std::max(shape.m, shape.n) <= kTiny) {
    for (std::int64_t b = range.begin; b < range.end; ++b)
      factor_plain(a + b * elements, h + b * elements, tau + b * shape.k, shape);
    return;
  }
  const int together = side_by_side(shape);
  for (std::int64_t b = range.begin; b < range.end; b += together) {
    Matrix matrix[kMatrices];
    const bool all = b + together <= range.end;
    for (int i = 0; i < (all ? together : 1); ++i)
      matrix[i] = matrix_at(b + i, range, a, h, tau, scratch + i * scratch_floats(shape), shape);
    if (all && together == kMatrices)
      factor_matrices<kMatrices>(matrix, shape);
    else
      factor_matrices<1>(matrix, shape);
  }
#if defined(__SSE__)
  if (kStream == 1) _mm_sfence();
#endif
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  Shape shape{};
  shape.m = static_cast<int>(a.dim(1));
  shape.n = static_cast<int>(a.dim(2));
  shape.k = std::min(shape.m, shape.n);
  shape.strips = (shape.n + kLanes - 1) / kLanes;
  const auto scratch = plan.worker_scratch<float>(side_by_side(shape) * scratch_floats(shape));
  plan.parallel_for(a.dim(0), 0, factor, a, h, tau, scratch, shape);
}
