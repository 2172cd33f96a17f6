// SIMD across matrices: kLanes matrices are packed so that one vector holds the same element of
// each, and every step of the factorisation runs on all of them at once, with no horizontal work.
// Meant for n <= 64; right anywhere.
#include <immintrin.h>
#include <kbeam/candidate.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

KBEAM_KNOB(int, kLanes, 16, 4, 8, 16);   // matrices a vector
KBEAM_KNOB(int, kBlock, 2, 1, 2, 3, 4);  // reflectors that are applied at once, to as many columns
KBEAM_KNOB(int, kGroup, 1, 1, 2, 4);     // blocks of columns that share each load of a block
KBEAM_KNOB(int, kPipeline, 0, 0, 1);     // 1: pack and unpack other groups between the reflectors
KBEAM_KNOB(int, kPrefetch, 0, 0, 1,
           2);                      // fetch a coming group: 1 in all passes, 2 in updates alone
KBEAM_KNOB(int, kPad, 0, 0, 1);     // empty vectors between columns, against 4 KiB aliasing
KBEAM_KNOB(int, kStream, 0, 0, 1);  // 1: write H around the cache

namespace {

using Lane = kbeam::Vector<float, kLanes>;
using LaneBits = kbeam::Vector<std::int32_t, kLanes>;

constexpr int kTiny = 8;        // up to this size the plain path is more accurate
constexpr int kMostRows = 256;  // above it, single sums lose too many digits
constexpr std::int64_t kMostElements =
    256 * 256;  // above it, a group of matrices leaves every cache
// A reflector is made as it stands while its tail's sum of squares lost nothing to range and its
// column's norm neither multiplies other columns out of it.
constexpr float kTailLow = 0x1p-80f, kSquareLow = 0x1p-20f, kSquareHigh = 0x1p60f;

struct Shape {
  std::int64_t batch;
  int m, n, k;
  int stride;  // vectors from one packed column to the next
};

bool packs(const Shape& shape) {
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  return std::max(shape.m, shape.n) > kTiny && shape.m <= kMostRows && elements >= kLanes &&
         elements <= kMostElements;
}

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
Lane select(LaneBits mask, Lane yes, Lane no) {
  return std::bit_cast<Lane>((mask & bits(yes)) | (~mask & bits(no)));
}

template <int kWidth>
bool all(kbeam::Vector<std::int32_t, kWidth> mask) {
#if defined(__AVX512DQ__)
  if constexpr (kWidth == 16) return _mm512_movepi32_mask(std::bit_cast<__m512i>(mask)) == 0xffff;
#endif
  std::int32_t every = -1;
  for (int l = 0; l < kLanes; ++l) every &= mask[l];
  return every != 0;
}

Lane square_root(Lane x) {
  alignas(64) float value[kLanes];
  store(value, x);
  for (float& v : value) v = std::sqrt(v);
  return get(value);
}

// --- the plain path: one matrix, sums in double precision; right for every input, fast for none
// ---

// Eight sums, so that they fit a vector.
double dot_below(const float* v, const float* x, int above, int m) {
  double sum[8] = {};
  int i = above + 1;
  for (; i + 8 <= m; i += 8)
    for (int u = 0; u < 8; ++u) sum[u] += static_cast<double>(v[i + u]) * x[i + u];
  for (; i < m; ++i) sum[0] += static_cast<double>(v[i]) * x[i];
  return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
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

// --- packing: element e of matrix l <-> group[e * kLanes + l] ---

constexpr int kFour = 4;  // floats in the parts of a vector that cheap shuffles stay inside

// Interleaves the lower or upper halves of every four floats, kUnit floats at a time.
template <int kUnit, bool kUpper>
[[gnu::always_inline]] inline Lane zip(Lane a, Lane b) {
  return [&]<int... i>(std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(
        a, b,
        (i / kFour * kFour + kUpper * 2 + (kUnit == 1 ? i % kFour / 2 : i % 2) +
         (kUnit == 1 ? i % 2 : i % kFour / 2) * kLanes)...);
  }
  (std::make_integer_sequence<int, kLanes>{});
}

// Every other four floats of a, then of b.
template <bool kOdd>
[[gnu::always_inline]] inline Lane every_other_four(Lane a, Lane b) {
  return [&]<int... i>(std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, ((i / kFour * 2 + kOdd) * kFour + i % kFour)...);
  }
  (std::make_integer_sequence<int, kLanes>{});
}

// Two half vectors side by side: the second is inserted by its load, which leaves the shuffle unit
// free.
template <int kWidth>
[[gnu::always_inline]] inline kbeam::Vector<float, kWidth> join(const float* low,
                                                                const float* high) {
#if defined(__AVX512F__)
  if constexpr (kWidth == 16) {
    const auto half = [](const float* from) { return _mm256_castps_pd(_mm256_loadu_ps(from)); };
    return _mm512_castpd_ps(
        _mm512_maskz_insertf64x4(0xff, _mm512_castpd256_pd512(half(low)), half(high), 1));
  }
#endif
  using Half [[gnu::aligned(4), gnu::may_alias]] = kbeam::Vector<float, kWidth / 2>;
  const auto half = [](const float* from) { return *reinterpret_cast<const Half*>(from); };
  return [&]<int... i>(std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(half(low), half(high), i...);
  }
  (std::make_integer_sequence<int, kWidth>{});
}

// Column c of the kLanes x kLanes tile whose row r is at row(r), as tile[c].
template <typename Row>
[[gnu::always_inline]] inline void load_transposed(const Row& row, Lane (&tile)[kLanes]) {
  // First four floats at a time: tile[c + r] holds [c, c + 4) of the rows r, r + 4, r + 8 ...
#pragma GCC unroll 4
  for (int r = 0; r < kFour; ++r) {
    if constexpr (kLanes == 4) tile[r] = get(row(r));
    if constexpr (kLanes == 8) {
      tile[r] = join<kLanes>(row(r), row(r + 4));
      tile[4 + r] = join<kLanes>(row(r) + 4, row(r + 4) + 4);
    }
    if constexpr (kLanes == 16)
#pragma GCC unroll 2
      for (int c = 0; c < kLanes; c += 8) {
        const Lane upper = join<kLanes>(row(r) + c, row(r + 4) + c);
        const Lane lower = join<kLanes>(row(r + 8) + c, row(r + 12) + c);
        tile[c + r] = every_other_four<false>(upper, lower);
        tile[c + 4 + r] = every_other_four<true>(upper, lower);
      }
  }
  // Then 4 x 4 floats inside every four.
#pragma GCC unroll 4
  for (int c = 0; c < kLanes; c += kFour) {
    const Lane a = zip<1, false>(tile[c], tile[c + 1]), b = zip<1, true>(tile[c], tile[c + 1]);
    const Lane d = zip<1, false>(tile[c + 2], tile[c + 3]),
               e = zip<1, true>(tile[c + 2], tile[c + 3]);
    tile[c] = zip<2, false>(a, d);
    tile[c + 1] = zip<2, true>(a, d);
    tile[c + 2] = zip<2, false>(b, e);
    tile[c + 3] = zip<2, true>(b, e);
  }
}

// kLanes matrices on their way through: packed columns of `stride` vectors, then tau.
struct Group {
  const float* a[kLanes];
  float* h[kLanes];
  float* tau[kLanes];
  int count;  // lanes from here on repeat the last matrix and are not written
  float* x;
  float* packed_tau;
};

// A matrix is cut into tiles of kLanes elements; the last one of a run may overlap the one before.
// Without padding the whole matrix is one run.
struct Tiles {
  int runs, a_run;
  std::int64_t length, stride;

  explicit Tiles(const Shape& shape) {
    const bool padded = shape.stride != shape.m;
    runs = padded ? shape.n : 1;
    length = padded ? shape.m : std::int64_t{shape.m} * shape.n;
    stride = shape.stride;
    a_run = static_cast<int>((length + kLanes - 1) / kLanes);
  }
  int count() const { return runs * a_run; }
  std::int64_t row(int tile) const {
    return std::min<std::int64_t>(tile % a_run * kLanes, length - kLanes);
  }
  std::int64_t element(int tile) const { return tile / a_run * length + row(tile); }
  std::int64_t vector(int tile) const { return tile / a_run * stride + row(tile); }
};

void pack(const Group& group, std::int64_t element, std::int64_t vector) {
  Lane tile[kLanes];
  load_transposed([&](int l) { return group.a[l] + element; }, tile);
#pragma GCC unroll 16
  for (int l = 0; l < kLanes; ++l) store(group.x + (vector + l) * kLanes, tile[l]);
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

// Whether runs of `length` floats from `to` on can be written around the cache.
bool streams(const float* to, int length) {
  return kStream == 1 && length % kLanes == 0 &&
         reinterpret_cast<std::uintptr_t>(to) % sizeof(Lane) == 0;
}

// Writes kLanes vectors of the group to `to[l] + at` of every matrix.
void unpack(const Group& group, const float* packed, float* const (&to)[kLanes], std::int64_t at,
            bool around) {
  Lane tile[kLanes];
  load_transposed([&](int l) { return packed + l * kLanes; }, tile);
  if (group.count < kLanes) {
    for (int l = 0; l < group.count; ++l) store(to[l] + at, tile[l]);
  } else if (around) {
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) write_around_cache<kLanes>(to[l] + at, tile[l]);
  } else {
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) store(to[l] + at, tile[l]);
  }
}

void unpack_tau(const Group& group, int k) {
  for (int j = 0; k >= kLanes && j < k; j += kLanes) {
    const int first = std::min(j, k - kLanes);
    unpack(group, group.packed_tau + first * kLanes, group.tau, first, streams(group.tau[0], k));
  }
  for (int l = 0; k < kLanes && l < group.count; ++l)
    for (int j = 0; j < k; ++j) group.tau[l][j] = group.packed_tau[j * kLanes + l];
}

// Moves tiles [from, to) of `done` out to H and of `next` in from A. They may share one buffer;
// either may be null.
void transfer(const Group* done, const Group* next, const Shape& shape, int from, int to) {
  const Tiles tiles(shape);
  const bool around = done && streams(done->h[0], shape.m);
  for (int t = from; t < to; ++t) {
    if (done) unpack(*done, done->x + tiles.vector(t) * kLanes, done->h, tiles.element(t), around);
    if (next) pack(*next, tiles.element(t), tiles.vector(t));
  }
}

// Fetches memory in small bites, so that it comes in under arithmetic.
class Fetcher {
 public:
  void aim(const float* from, std::int64_t elements) {
    next_ = from;
    last_ = from + std::max<std::int64_t>(0, elements - kLine);
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

// --- the factorisation; every pointer is to packed columns of m vectors ---

struct Reflector {
  Lane beta, tau, scale;  // v = x * scale below the diagonal
};

// Whether estimates and Newton steps stand for square roots and quotients: 9 % at n = 16, in cache.
#if defined(__AVX512F__)
constexpr bool kEstimates = kLanes == 16;
#else
constexpr bool kEstimates = false;
#endif

// 1 / sqrt(x) and 1 / x; x is far from both ends of the range.
template <int kWidth>
kbeam::Vector<float, kWidth> inverse_root(kbeam::Vector<float, kWidth> x) {
#if defined(__AVX512F__)
  if constexpr (kWidth == 16) {
    const kbeam::Vector<float, kWidth> y = _mm512_maskz_rsqrt14_ps(0xffff, x);
    return y + 0.5f * y * (1.0f - x * y * y);
  }
#endif
  return 1.0f / square_root(x);
}
template <int kWidth>
kbeam::Vector<float, kWidth> inverse(kbeam::Vector<float, kWidth> x) {
#if defined(__AVX512F__)
  if constexpr (kWidth == 16) {
    const kbeam::Vector<float, kWidth> y = _mm512_maskz_rcp14_ps(0xffff, x);
    return y + y * (1.0f - x * y);
  }
#endif
  return 1.0f / x;
}

Lane with_other_sign(Lane size, Lane x) {
  const LaneBits kSign = LaneBits{} + INT32_MIN;
  return std::bit_cast<Lane>(bits(size) | (~bits(x) & kSign));
}

Reflector reflector_from(Lane alpha, Lane tail) {
  const Lane square = tail + alpha * alpha;
  if constexpr (kEstimates) {
    const Lane inverse_norm = inverse_root<kLanes>(square), guess = square * inverse_norm;
    const Lane norm = guess + 0.5f * inverse_norm * (square - guess * guess);
    const Lane beta = with_other_sign(norm, alpha);
    const Lane size = std::bit_cast<Lane>(bits(alpha) & INT32_MAX);
    return {beta, 1.0f + size * inverse_norm, inverse<kLanes>(alpha - beta)};
  }
  const Lane beta = with_other_sign(square_root(square), alpha);
  return {beta, (beta - alpha) / beta, 1.0f / (alpha - beta)};
}

// Columns of one block: kCount of them from `at` on, of which kOwn are reflectors already. Sums
// over rows [from, m) of column kOwn times every column.
template <int kOwn, int kCount>
[[gnu::always_inline]] inline void pivot_dots(const float* at, std::int64_t column, int from, int m,
                                              Lane (&dot)[kCount]) {
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) dot[c] = Lane{};
  for (int i = from; i < m; ++i) {
    const Lane own = get(at + kOwn * column + i * kLanes);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) dot[c] += own * get(at + c * column + i * kLanes);
  }
}

// Some lane left the safe range: in every lane, multiply column kOwn by powers of two that bring
// its norm below 1 and not below 1/2, which is exact. Its dots with other columns then overflow and
// underflow no more than these columns themselves.
template <int kOwn, int kCount>
[[gnu::noinline]] Reflector reflector_rescaled(float* at, std::int64_t column, int m, int j,
                                               Lane (&dot)[kCount]) {
  float* x = at + kOwn * column;
  const Lane alpha = get(x + j * kLanes);
  Lane most{}, tail_most{};
  for (int i = m - 1; i >= j; --i) {
    tail_most = most;
    const Lane size = std::bit_cast<Lane>(bits(get(x + i * kLanes)) & INT32_MAX);
    most = select(size <= most, most, size);  // a NaN wins
  }
  LaneBits exponent = 254 - (bits(most) >> 23);
  exponent = exponent < 1 ? LaneBits{} + 1 : exponent;
  const Lane first = std::bit_cast<Lane>(exponent << 23);
  Lane head = alpha * first, square = head * head;
  for (int i = j + 1; i < m; ++i) {
    const Lane scaled = get(x + i * kLanes) * first;
    store(x + i * kLanes, scaled);
    square += scaled * scaled;
  }
  const LaneBits half = (((bits(square) >> 23) - 127) >> 1) + 1;
  const Lane second = std::bit_cast<Lane>((127 - half) << 23);
  for (int i = j + 1; i < m; ++i) store(x + i * kLanes, get(x + i * kLanes) * second);
  head *= second;
  pivot_dots<kOwn, kCount>(at, column, j + 1, m, dot);
  const Lane norm = square_root(dot[kOwn] + head * head);
  const Lane beta = with_other_sign(norm, head);
  // Nothing below the diagonal: H = I and the diagonal keeps its sign.
  const LaneBits empty = tail_most == 0.0f;
  return {select(empty, alpha, beta / second / first), select(empty, Lane{}, (beta - head) / beta),
          select(empty, Lane{}, 1.0f / (head - beta))};
}

// Whether sums were neither too large nor too small for what is made of them.
template <int kOwn, int kCount>
[[gnu::always_inline]] inline bool in_range(Lane alpha, const Lane (&dot)[kCount]) {
  const Lane square = dot[kOwn] + alpha * alpha;
  Lane zero{};  // or NaN, if some sum is not finite
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) zero += dot[c] * 0.0f;
  return all<kLanes>((dot[kOwn] > kTailLow) & (square > kSquareLow) & (square < kSquareHigh) &
                     (zero == 0.0f));
}

// Makes reflector j of column kOwn of a block of kCount, takes it to the later ones and returns in
// `dot` the sums of the next column over rows below its head; so each column costs one pass. The
// dots of the new reflector with those before it go to gram. `meanwhile` is called where the pass
// has to wait for the root.
template <int kOwn, int kCount, typename Meanwhile>
[[gnu::always_inline]] inline void make_reflector(float* at, std::int64_t column, float* tau,
                                                  float* gram, int m, int j, Lane (&dot)[kCount],
                                                  Meanwhile meanwhile, Fetcher& fetcher) {
  float* x = at + kOwn * column;
  const Lane alpha = get(x + j * kLanes), tail = dot[kOwn];
  Reflector r{alpha, Lane{}, Lane{}};
  if (in_range<kOwn, kCount>(alpha, dot)) [[likely]]
    r = reflector_from(alpha, tail);
  else if (j + 1 < m)
    r = reflector_rescaled<kOwn, kCount>(at, column, m, j, dot);
  store(x + j * kLanes, r.beta);
  store(tau, r.tau);
  Lane w[kCount];
#pragma GCC unroll 4
  for (int c = 0; c < kCount; ++c) {
    if (c == kOwn) continue;
    float* head = at + c * column + j * kLanes;
    const Lane product = get(head) + r.scale * dot[c];
    if (c < kOwn) store(gram + (kOwn * kBlock + c) * kLanes, product);
    if (c > kOwn) {
      w[c] = r.tau * product;
      store(head, get(head) - w[c]);
    }
  }
  meanwhile();
  Fetcher fetch = fetcher;
  if constexpr (kOwn + 1 == kCount) {
    for (int i = j + 1; i < m; ++i) {
      if (kPrefetch == 1) fetch.step();
      store(x + i * kLanes, get(x + i * kLanes) * r.scale);
    }
  } else {
    const auto row = [&](int i, Lane(&element)[kCount]) {
      element[kOwn] = get(x + i * kLanes) * r.scale;
      store(x + i * kLanes, element[kOwn]);
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c) {
        if (c == kOwn) continue;
        float* to = at + c * column + i * kLanes;
        element[c] = get(to);
        if (c < kOwn) continue;
        element[c] -= element[kOwn] * w[c];
        store(to, element[c]);
      }
    };
    Lane element[kCount];
    if (j + 1 < m) row(j + 1, element);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) dot[c] = Lane{};
    for (int i = j + 2; i < m; ++i) {
      if (kPrefetch == 1) fetch.step();
      row(i, element);
#pragma GCC unroll 4
      for (int c = 0; c < kCount; ++c) dot[c] += element[kOwn + 1] * element[c];
    }
  }
  fetcher = fetch;
}

// The dots of kCount columns at x with reflectors [j, j + kReflectors), whose columns start at v.
template <int kReflectors, int kCount>
[[gnu::always_inline]] inline void take_dots(const float* v, const float* x, std::int64_t column,
                                             int j, int m, Lane (&dot)[kReflectors][kCount],
                                             Fetcher& fetcher) {
  Fetcher fetch = fetcher;
  // The triangle of rows that holds the heads, whose elements are 1.
#pragma GCC unroll 4
  for (int r = 0; r < kReflectors; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      dot[r][c] = get(x + c * column + (j + r) * kLanes);
#pragma GCC unroll 4
      for (int i = r + 1; i < kReflectors; ++i)
        dot[r][c] +=
            get(v + r * column + (j + i) * kLanes) * get(x + c * column + (j + i) * kLanes);
    }
  for (int i = j + kReflectors; i < m; ++i) {
    if (kPrefetch == 1) fetch.step();
    Lane row[kReflectors];
#pragma GCC unroll 4
    for (int r = 0; r < kReflectors; ++r) row[r] = get(v + r * column + i * kLanes);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      const Lane element = get(x + c * column + i * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < kReflectors; ++r) dot[r][c] += row[r] * element;
    }
  }
  fetcher = fetch;
}

// Applies reflectors [j, j + kReflectors) to kCount neighbouring columns at x; gram holds their
// dots with each other.
template <int kReflectors, int kCount>
void apply_block(const float* v, const float* gram, const float* tau, float* x, std::int64_t column,
                 int j, int m, Fetcher& fetcher) {
  Lane w[kReflectors][kCount];
  take_dots<kReflectors, kCount>(v, x, column, j, m, w, fetcher);
  // One after the other: w_r = tau_r (dot_r - sum over s < r of (v_r'v_s) w_s).
#pragma GCC unroll 4
  for (int r = 0; r < kReflectors; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
#pragma GCC unroll 4
      for (int s = 0; s < r; ++s) w[r][c] -= get(gram + (r * kBlock + s) * kLanes) * w[s][c];
      w[r][c] *= get(tau + r * kLanes);
    }
#pragma GCC unroll 4
  for (int i = 0; i < kReflectors; ++i)
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      float* at = x + c * column + (j + i) * kLanes;
      Lane element = get(at) - w[i][c];
#pragma GCC unroll 4
      for (int r = 0; r < i; ++r) element -= get(v + r * column + (j + i) * kLanes) * w[r][c];
      store(at, element);
    }
  Fetcher fetch = fetcher;
  for (int i = j + kReflectors; i < m; ++i) {
    fetch.step();
    Lane row[kReflectors];
#pragma GCC unroll 4
    for (int r = 0; r < kReflectors; ++r) row[r] = get(v + r * column + i * kLanes);
#pragma GCC unroll 4
    for (int c = 0; c < kCount; ++c) {
      float* at = x + c * column + i * kLanes;
      Lane element = get(at);
#pragma GCC unroll 4
      for (int r = 0; r < kReflectors; ++r) element -= row[r] * w[r][c];
      store(at, element);
    }
  }
  fetcher = fetch;
}

// What factor_group keeps at hand. Reflector j's dots with those before it in its block are at
// gram[j % kBlock].
struct Work {
  const Group& group;
  const Shape& shape;
  float* gram;  // kBlock x kBlock vectors a block
  std::int64_t column;
  Fetcher& fetcher;

  float* x(int c) const { return group.x + c * column; }
  float* tau(int j) const { return group.packed_tau + j * kLanes; }
  float* gram_of(int j) const { return gram + j / kBlock * (kBlock * kBlock * kLanes); }

  // Reflectors [j, j + kReflectors) on columns [c, c + kCount).
  template <int kReflectors, int kCount>
  void apply(int j, int c) const {
    apply_block<kReflectors, kCount>(x(j), gram_of(j), tau(j), x(c), column, j, shape.m, fetcher);
  }
};

// Makes the reflectors of kCount columns that are up to date, and calls meanwhile(j) at each.
template <int kCount, typename Meanwhile>
void factor_columns(const Work& work, int first, Meanwhile meanwhile) {
  const int m = work.shape.m;
  float* at = work.x(first);
  Lane dot[kCount];
  pivot_dots<0, kCount>(at, work.column, first + 1, m, dot);
  [&]<int... c>(std::integer_sequence<int, c...>) {
    const auto own = [&]<int kOwn>(std::integral_constant<int, kOwn>) {
      const int j = first + kOwn;
      if (j >= work.shape.k) return;
      make_reflector<kOwn, kCount>(
          at, work.column, work.tau(j), work.gram_of(j), m, j, dot, [&] { meanwhile(j); },
          work.fetcher);
    };
    (own(std::integral_constant<int, c>{}), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

// Left-looking over groups of kGroup blocks of columns: a block of reflectors serves a whole group
// while it is in L1.
template <typename Meanwhile>
void factor_group(const Work& work, Meanwhile meanwhile) {
  const int n = work.shape.n, k = work.shape.k, blocks = n / kBlock;
  // Whole blocks of reflectors before column `to`; a last narrow block ends the matrix.
  const auto whole = [&](int block) { return std::min(block, k / kBlock); };
  for (int g = 0; g < blocks; g += kGroup) {
    const int end = std::min(g + kGroup, blocks);
    for (int q = 0; q < whole(g); ++q)
      for (int p = g; p < end; ++p) work.apply<kBlock, kBlock>(q * kBlock, p * kBlock);
    for (int q = whole(g) * kBlock; q < std::min(g * kBlock, k); ++q)
      for (int p = g; p < end; ++p) work.apply<1, kBlock>(q, p * kBlock);
    for (int p = g; p < end; ++p) {
      factor_columns<kBlock>(work, p * kBlock, meanwhile);
      const int made = std::min((p + 1) * kBlock, k) - p * kBlock;
      for (int later = p + 1; later < end; ++later) {
        if (made == kBlock)
          work.apply<kBlock, kBlock>(p * kBlock, later * kBlock);
        else
          for (int r = 0; r < made; ++r) work.apply<1, kBlock>(p * kBlock + r, later * kBlock);
      }
    }
  }
  for (int c = blocks * kBlock; c < n; ++c) {
    int q = 0;
    for (; q + kBlock <= std::min(c, k); q += kBlock) work.apply<kBlock, 1>(q, c);
    for (; q < std::min(c, k); ++q) work.apply<1, 1>(q, c);
    factor_columns<1>(work, c, meanwhile);
  }
}

std::int64_t packed_floats(const Shape& shape) {
  return (std::int64_t{shape.stride} * shape.n + shape.k) * kLanes;
}

// Takes the groups of one range through. Pipelined, two buffers take turns: while the group in one
// is factored, the one before it leaves the other and the one after it comes in, tile by tile.
void factor_packed(kbeam::Range range, const float* a, float* h, float* tau, float* scratch,
                   const Shape& shape) {
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  const int tiles = Tiles(shape).count();
  // Overlapping tiles cannot be replaced one by one.
  const bool pipelined = kPipeline == 1 && shape.m % kLanes == 0;
  const auto group_at = [&](std::int64_t first) {
    Group group;
    for (int l = 0; l < kLanes; ++l) {
      const std::int64_t matrix = std::min(first + l, range.end - 1);
      group.a[l] = a + matrix * elements;
      group.h[l] = h + matrix * elements;
      group.tau[l] = tau + matrix * shape.k;
    }
    group.count = static_cast<int>(std::min<std::int64_t>(kLanes, range.end - first));
    const bool odd = pipelined && (first - range.begin) / kLanes % 2 == 1;
    group.x = scratch + (odd ? packed_floats(shape) : 0);
    group.packed_tau = group.x + std::int64_t{shape.stride} * shape.n * kLanes;
    return group;
  };
  float* gram = scratch + (1 + kPipeline) * packed_floats(shape);
  Group current = group_at(range.begin), done = current;
  transfer(nullptr, &current, shape, 0, tiles);
  for (std::int64_t b = range.begin; b < range.end; b += kLanes) {
    const bool more = b + kLanes < range.end;
    const Group next = more ? group_at(b + kLanes) : current;
    // Pipelined, the next group is packed by the end of this one, and the one behind it is wanted.
    const std::int64_t wanted = b + (pipelined ? 2 : 1) * kLanes;
    Fetcher fetcher;
    fetcher.aim(a + std::min(wanted, range.end - 1) * elements,
                std::clamp<std::int64_t>(range.end - wanted, 1, kLanes) * elements);
    const Work work{current, shape, gram, std::int64_t{shape.stride} * kLanes, fetcher};
    if (pipelined) {
      const Group* leaving = b == range.begin ? nullptr : &done;
      const Group* coming = more ? &next : nullptr;
      factor_group(work, [&](int j) {
        transfer(leaving, coming, shape, tiles * j / shape.k, tiles * (j + 1) / shape.k);
      });
    } else {
      factor_group(work, [](int) {});
      transfer(&current, nullptr, shape, 0, tiles);
      if (more) transfer(nullptr, &next, shape, 0, tiles);
    }
    unpack_tau(current, shape.k);
    done = current;
    current = next;
  }
  if (pipelined) transfer(&done, nullptr, shape, 0, tiles);
#if defined(__SSE__)
  if (kStream == 1) _mm_sfence();
#endif
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, float* scratch, Shape shape) {
  if (packs(shape)) return factor_packed(range, a, h, tau, scratch, shape);
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  for (std::int64_t b = range.begin; b < range.end; ++b)
    factor_plain(a + b * elements, h + b * elements, tau + b * shape.k, shape);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  Shape shape{};
  shape.batch = a.dim(0);
  shape.m = static_cast<int>(a.dim(1));
  shape.n = static_cast<int>(a.dim(2));
  shape.k = std::min(shape.m, shape.n);
  shape.stride = shape.m >= kLanes ? shape.m + kPad : shape.m;
  const std::int64_t gram = std::int64_t{shape.k / kBlock + 1} * kBlock * kBlock * kLanes;
  const std::int64_t floats = (1 + kPipeline) * packed_floats(shape) + gram;
  const auto scratch = plan.worker_scratch<float>(packs(shape) ? floats : 1);
  plan.parallel_for(shape.batch, 0, factor, a, h, tau, scratch, shape);
}
