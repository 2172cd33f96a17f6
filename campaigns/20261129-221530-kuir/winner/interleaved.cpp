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

KBEAM_KNOB(int, kLanes, 8, 4, 8, 16);    // matrices a vector
KBEAM_KNOB(int, kBlock, 1, 1, 2, 3, 4);  // reflectors that are applied at once, to as many columns
KBEAM_KNOB(int, kGroup, 1, 1, 2, 4);     // blocks of columns that share each load of a block
KBEAM_KNOB(int, kPipeline, 0, 0, 1);     // 1: pack and unpack other groups between the reflectors
KBEAM_KNOB(int, kPrefetch, 0, 0, 1, 2);  // fetch a coming group: 1 while packing, 2 while applying
KBEAM_KNOB(int, kPad, 0, 0, 1, 3);       // empty vectors between columns, against 4 KiB aliasing
KBEAM_KNOB(int, kStream, 0, 0, 1);       // 1: write H around the cache

namespace {

using Lane = kbeam::Vector<float, kLanes>;
using LaneBits = kbeam::Vector<std::int32_t, kLanes>;

constexpr int kTiny = 8;        // up to this size the plain path is more accurate
constexpr int kMostRows = 256;  // above it, single sums lose too many digits
constexpr std::int64_t kMostElements =
    256 * 256;  // above it, a group of matrices leaves every cache
constexpr float kSafeLow = 0x1p-80f,
                kSafeHigh = 0x1p100f;  // sums of squares that lost nothing to range

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

bool all(LaneBits mask) {
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

// `ahead` is the distance in elements to what is to be fetched, or 0.
void pack(const Group& group, std::int64_t element, std::int64_t vector, std::int64_t ahead) {
  Lane tile[kLanes];
#pragma GCC unroll 16
  for (int l = 0; l < kLanes; ++l) {
    tile[l] = get(group.a[l] + element);
    if (kPrefetch == 1) __builtin_prefetch(group.a[l] + element + ahead, 0, 2);
  }
  transpose(tile);
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
#pragma GCC unroll 16
  for (int l = 0; l < kLanes; ++l) tile[l] = get(packed + l * kLanes);
  transpose(tile);
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
void transfer(const Group* done, const Group* next, const Shape& shape, int from, int to,
              std::int64_t ahead) {
  const Tiles tiles(shape);
  const bool around = done && streams(done->h[0], shape.m);
  for (int t = from; t < to; ++t) {
    if (done) unpack(*done, done->x + tiles.vector(t) * kLanes, done->h, tiles.element(t), around);
    if (next) pack(*next, tiles.element(t), tiles.vector(t), ahead);
  }
}

// --- the factorisation; every pointer is to packed columns of m vectors ---

struct Reflector {
  Lane beta, tau, scale;  // v = x * scale below the diagonal
};

Reflector reflector_from(Lane alpha, Lane tail) {
  const Lane norm = square_root(tail + alpha * alpha);
  const LaneBits kSign = LaneBits{} + INT32_MIN;
  const Lane beta = std::bit_cast<Lane>(bits(norm) | (~bits(alpha) & kSign));
  return {beta, (beta - alpha) / beta, 1.0f / (alpha - beta)};
}

// Some lane's sum of squares left the safe range: rescale every lane by a power of two, which is
// exact.
[[gnu::noinline]] Reflector reflector_rescaled(float* x, int m, int j) {
  Lane most{}, tail_most{};
  for (int i = m - 1; i >= j; --i) {
    tail_most = most;
    const Lane size = std::bit_cast<Lane>(bits(get(x + i * kLanes)) & INT32_MAX);
    most = select(size <= most, most, size);  // a NaN wins
  }
  LaneBits exponent = 254 - (bits(most) >> 23);
  exponent = exponent < 1 ? LaneBits{} + 1 : exponent;
  const Lane scale = std::bit_cast<Lane>(exponent << 23);
  Lane tail{};
  for (int i = j + 1; i < m; ++i) {
    const Lane scaled = get(x + i * kLanes) * scale;
    store(x + i * kLanes, scaled);
    tail += scaled * scaled;
  }
  const Lane alpha = get(x + j * kLanes);
  Reflector r = reflector_from(alpha * scale, tail);
  r.beta /= scale;
  // Nothing below the diagonal: H = I and the diagonal keeps its sign.
  const LaneBits empty = tail_most == 0.0f;
  return {select(empty, alpha, r.beta), select(empty, Lane{}, r.tau),
          select(empty, Lane{}, r.scale)};
}

// Makes reflector j of column x. The kBefore columns left of x belong to the same block: their dots
// with the new reflector go to gram.
template <int kBefore>
void make_reflector(float* x, std::int64_t column, float* tau, float* gram, int m, int j) {
  Lane sum[4] = {};
  int i = j + 1;
  for (; i + 4 <= m; i += 4)
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) sum[u] += get(x + (i + u) * kLanes) * get(x + (i + u) * kLanes);
  for (; i < m; ++i) sum[0] += get(x + i * kLanes) * get(x + i * kLanes);
  const Lane tail = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  const Lane alpha = get(x + j * kLanes);
  Reflector r{alpha, Lane{}, Lane{}};
  if (all((tail > kSafeLow) & (tail + alpha * alpha < kSafeHigh)))
    r = reflector_from(alpha, tail);
  else if (j + 1 < m)
    r = reflector_rescaled(x, m, j);
  store(x + j * kLanes, r.beta);
  store(tau, r.tau);
  const float* before = x - kBefore * column;
  Lane dot[kBefore + 1];
#pragma GCC unroll 4
  for (int s = 0; s < kBefore; ++s) dot[s] = get(before + s * column + j * kLanes);
  for (i = j + 1; i < m; ++i) {
    const Lane v = get(x + i * kLanes) * r.scale;
    store(x + i * kLanes, v);
#pragma GCC unroll 4
    for (int s = 0; s < kBefore; ++s) dot[s] += get(before + s * column + i * kLanes) * v;
  }
#pragma GCC unroll 4
  for (int s = 0; s < kBefore; ++s) store(gram + (kBefore * kBlock + s) * kLanes, dot[s]);
}

// Fetches memory in small bites, so that it comes in under arithmetic.
class Fetcher {
 public:
  void aim(const float* from, std::int64_t elements) {
    next_ = from;
    last_ = from + std::max<std::int64_t>(0, elements - kLine);
  }
  void step() {
    if (kPrefetch != 2) return;
    __builtin_prefetch(next_, 0, 2);
    next_ = std::min(next_ + kLine, last_);
  }

 private:
  static constexpr int kLine = 16;
  const float* next_ = nullptr;
  const float* last_ = nullptr;
};

// The dots of kCount columns at x with reflectors [j, j + kReflectors), whose columns start at v.
template <int kReflectors, int kCount>
[[gnu::always_inline]] inline void take_dots(const float* v, const float* x, std::int64_t column,
                                             int j, int m, Lane (&dot)[kReflectors][kCount]) {
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
}

// Applies reflectors [j, j + kReflectors) to kCount neighbouring columns at x; gram holds their
// dots with each other.
template <int kReflectors, int kCount>
void apply_block(const float* v, const float* gram, const float* tau, float* x, std::int64_t column,
                 int j, int m, Fetcher& fetcher) {
  Lane w[kReflectors][kCount];
  take_dots<kReflectors, kCount>(v, x, column, j, m, w);
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

// Makes the reflectors of kCount columns that are up to date, and calls after(j) behind each.
template <int kCount, typename After>
void factor_columns(const Work& work, int first, After after) {
  [&]<int... c>(std::integer_sequence<int, c...>) {
    const auto own = [&]<int kOwn>(std::integral_constant<int, kOwn>) {
      const int j = first + kOwn;
      if (j >= work.shape.k) return;
      make_reflector<kOwn>(work.x(j), work.column, work.tau(j), work.gram_of(j), work.shape.m, j);
      after(j);
      if constexpr (kOwn + 1 < kCount) work.apply<1, kCount - kOwn - 1>(j, j + 1);
    };
    (own(std::integral_constant<int, c>{}), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

// Left-looking over groups of kGroup blocks of columns: a block of reflectors serves a whole group
// while it is in L1.
template <typename After>
void factor_group(const Work& work, After after) {
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
      factor_columns<kBlock>(work, p * kBlock, after);
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
    factor_columns<1>(work, c, after);
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
  const auto ahead_of = [&](std::int64_t first) {
    return first + 2 * kLanes <= range.end ? kLanes * elements : 0;
  };
  float* gram = scratch + (1 + kPipeline) * packed_floats(shape);
  Group current = group_at(range.begin), done = current;
  transfer(nullptr, &current, shape, 0, tiles, ahead_of(range.begin));
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
        transfer(leaving, coming, shape, tiles * j / shape.k, tiles * (j + 1) / shape.k,
                 ahead_of(b + kLanes));
      });
    } else {
      factor_group(work, [](int) {});
      transfer(&current, nullptr, shape, 0, tiles, 0);
      if (more) transfer(nullptr, &next, shape, 0, tiles, ahead_of(b + kLanes));
    }
    unpack_tau(current, shape.k);
    done = current;
    current = next;
  }
  if (pipelined) transfer(&done, nullptr, shape, 0, tiles, 0);
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
