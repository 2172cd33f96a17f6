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

KBEAM_KNOB(int, kLanes, 8, 4, 8, 16);         // matrices a vector
KBEAM_KNOB(int, kColumns, 1, 1, 2, 3, 4, 6);  // columns that share each load of a reflector
KBEAM_KNOB(int, kFused, 0, 0, 1);  // 1: one sweep applies a reflector and takes the next one's dots
KBEAM_KNOB(int, kPrefetch, 0, 0, 1, 2);  // groups of matrices fetched ahead
KBEAM_KNOB(int, kPad, 0, 0, 1, 3);       // empty vectors between columns, against 4 KiB aliasing
KBEAM_KNOB(int, kStream, 0, 0, 1);       // 1: write H around the cache

namespace {

using Lane = kbeam::Vector<float, kLanes>;
using LaneBits = kbeam::Vector<std::int32_t, kLanes>;
using kbeam::load;
using kbeam::store;

constexpr int kTiny = 8;  // up to this size the plain path is more accurate, and fast enough
constexpr std::int64_t kMostElements = 256 * 256;  // above this a group leaves every cache
constexpr float kSafeLow = 0x1p-80f,
                kSafeHigh = 0x1p100f;  // sums of squares that lost nothing to range

struct Shape {
  std::int64_t batch;
  int m, n, k;
  int stride;  // vectors from one packed column to the next
};

bool packs(const Shape& shape) {
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  return std::max(shape.m, shape.n) > kTiny && elements >= kLanes && elements <= kMostElements;
}

Lane get(const float* from) {
  return load<Lane>(from);
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

// Calls tile(e, p) for tiles of kLanes elements at e, packed at vector p. The last tile of a run
// may overlap the one before. Without padding the whole matrix is one run.
template <typename Function>
void for_tiles(const Shape& shape, Function tile) {
  const bool padded = shape.stride != shape.m;
  const std::int64_t run = padded ? shape.m : std::int64_t{shape.m} * shape.n;
  for (int r = 0; r < (padded ? shape.n : 1); ++r)
    for (std::int64_t i = 0; i < run; i += kLanes) {
      const std::int64_t row = std::min(i, run - kLanes);
      tile(r * run + row, std::int64_t{r} * shape.stride + row);
    }
}

// `matrix[l]` is the first element of lane l's matrix; `ahead` the distance to the group to fetch,
// or 0.
void pack(const float* const (&matrix)[kLanes], float* group, const Shape& shape,
          std::int64_t ahead) {
  for_tiles(shape, [&](std::int64_t e, std::int64_t p) {
    Lane tile[kLanes];
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) {
      tile[l] = get(matrix[l] + e);
      if (kPrefetch > 0) __builtin_prefetch(matrix[l] + e + ahead, 0, 2);
    }
    transpose(tile);
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) store(group + (p + l) * kLanes, tile[l]);
  });
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

void unpack(const float* group, float* const (&matrix)[kLanes], int count, const Shape& shape) {
  const bool around = kStream == 1 && shape.m % kLanes == 0 &&
                      reinterpret_cast<std::uintptr_t>(matrix[0]) % sizeof(Lane) == 0;
  for_tiles(shape, [&](std::int64_t e, std::int64_t p) {
    Lane tile[kLanes];
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) tile[l] = get(group + (p + l) * kLanes);
    transpose(tile);
    if (around && count == kLanes) {
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) write_around_cache<kLanes>(matrix[l] + e, tile[l]);
    } else {
      for (int l = 0; l < count; ++l) store(matrix[l] + e, tile[l]);
    }
  });
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

void make_reflector(float* x, float* tau, int m, int j) {
  Lane sum[4] = {};
  int i = j + 1;
  for (; i + 4 <= m; i += 4)
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) sum[u] += get(x + (i + u) * kLanes) * get(x + (i + u) * kLanes);
  for (; i < m; ++i) sum[0] += get(x + i * kLanes) * get(x + i * kLanes);
  const Lane tail = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  const Lane alpha = get(x + j * kLanes);
  const bool safe = all((tail > kSafeLow) & (tail + alpha * alpha < kSafeHigh));
  const Reflector r = safe ? reflector_from(alpha, tail) : reflector_rescaled(x, m, j);
  store(x + j * kLanes, r.beta);
  store(tau, r.tau);
  for (i = j + 1; i < m; ++i) store(x + i * kLanes, get(x + i * kLanes) * r.scale);
}

// Applies reflectors [from, to) to kCount neighbouring columns at x.
template <int kCount>
void apply(const float* group, const float* tau, float* x, const Shape& shape, int from, int to) {
  const int m = shape.m;
  const std::int64_t column = std::int64_t{shape.stride} * kLanes;
  Lane dot[kCount] = {};
  // Loads of v come before the stores to x: the compiler cannot know that they never overlap.
  const auto take_dots = [&](const float* v, int j) {
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) dot[c] = get(x + c * column + j * kLanes);
    for (int i = j + 1; i < m; ++i) {
      const Lane vi = get(v + i * kLanes);
#pragma GCC unroll 8
      for (int c = 0; c < kCount; ++c) dot[c] += vi * get(x + c * column + i * kLanes);
    }
  };
  for (int j = from; j < to; ++j) {
    const float* v = group + j * column;
    if (kFused == 0 || j == from) take_dots(v, j);
    Lane w[kCount];
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) {
      w[c] = dot[c] * get(tau + j * kLanes);
      float* head = x + c * column + j * kLanes;
      store(head, get(head) - w[c]);
    }
    if (kFused == 0 || j + 1 == to) {
      for (int i = j + 1; i < m; ++i) {
        const Lane vi = get(v + i * kLanes);
#pragma GCC unroll 8
        for (int c = 0; c < kCount; ++c) {
          float* element = x + c * column + i * kLanes;
          store(element, get(element) - w[c] * vi);
        }
      }
      continue;
    }
    // Row j + 1 is the head of the next reflector, whose element there is 1.
    const float* next = v + column;
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) {
      float* element = x + c * column + (j + 1) * kLanes;
      dot[c] = get(element) - w[c] * get(v + (j + 1) * kLanes);
      store(element, dot[c]);
    }
    for (int i = j + 2; i < m; ++i) {
      const Lane vi = get(v + i * kLanes), next_vi = get(next + i * kLanes);
#pragma GCC unroll 8
      for (int c = 0; c < kCount; ++c) {
        float* element = x + c * column + i * kLanes;
        const Lane updated = get(element) - w[c] * vi;
        store(element, updated);
        dot[c] += updated * next_vi;
      }
    }
  }
}

// One block of columns, left-looking: first everything to its left, then its own reflectors.
template <int kCount>
void factor_columns(float* group, float* tau, int column, const Shape& shape) {
  const std::int64_t stride = std::int64_t{shape.stride} * kLanes;
  float* x = group + column * stride;
  apply<kCount>(group, tau, x, shape, 0, std::min(column, shape.k));
  [&]<int... c>(std::integer_sequence<int, c...>) {
    const auto own = [&]<int kOwn>(std::integral_constant<int, kOwn>) {
      const int j = column + kOwn;
      if (j >= shape.k) return;
      make_reflector(x + kOwn * stride, tau + j * kLanes, shape.m, j);
      if constexpr (kOwn + 1 < kCount)
        apply<kCount - kOwn - 1>(group, tau, x + (kOwn + 1) * stride, shape, j, j + 1);
    };
    (own(std::integral_constant<int, c>{}), ...);
  }
  (std::make_integer_sequence<int, kCount>{});
}

void factor_group(float* group, float* tau, const Shape& shape) {
  int column = 0;
  for (; column + kColumns <= shape.n; column += kColumns)
    factor_columns<kColumns>(group, tau, column, shape);
  for (; column < shape.n; ++column) factor_columns<1>(group, tau, column, shape);
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, float* scratch, Shape shape) {
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  if (!packs(shape)) {
    for (std::int64_t b = range.begin; b < range.end; ++b)
      factor_plain(a + b * elements, h + b * elements, tau + b * shape.k, shape);
    return;
  }
  float* packed_tau = scratch + std::int64_t{shape.stride} * shape.n * kLanes;
  for (std::int64_t b = range.begin; b < range.end; b += kLanes) {
    const float* from[kLanes];
    float* to[kLanes];
    for (int l = 0; l < kLanes; ++l) {  // lanes beyond the range repeat its last matrix
      const std::int64_t matrix = std::min(b + l, range.end - 1);
      from[l] = a + matrix * elements;
      to[l] = h + matrix * elements;
    }
    const int count = static_cast<int>(std::min<std::int64_t>(kLanes, range.end - b));
    const bool more = b + (kPrefetch + 1) * kLanes <= range.end;
    pack(from, scratch, shape, more ? kPrefetch * kLanes * elements : 0);
    factor_group(scratch, packed_tau, shape);
    unpack(scratch, to, count, shape);
    for (int l = 0; l < count; ++l)
      for (int j = 0; j < shape.k; ++j) tau[(b + l) * shape.k + j] = packed_tau[j * kLanes + l];
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
  shape.batch = a.dim(0);
  shape.m = static_cast<int>(a.dim(1));
  shape.n = static_cast<int>(a.dim(2));
  shape.k = std::min(shape.m, shape.n);
  shape.stride = shape.m >= kLanes ? shape.m + kPad : shape.m;
  const std::int64_t packed = (std::int64_t{shape.stride} * shape.n + shape.k) * kLanes;
  const auto scratch = plan.worker_scratch<float>(packs(shape) ? packed : 1);
  plan.parallel_for(shape.batch, 0, factor, a, h, tau, scratch, shape);
}
