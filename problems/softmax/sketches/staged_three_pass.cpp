// One row at a time in three passes: maximum; exponentials into a staging row that stays in the
// cache, with their sum; scaled copy to the output. The output is written once, so it can bypass
// the cache.
#include <kbeam/candidate.h>

#include <bit>
#include <limits>

#if defined(__AVX__)
#include <immintrin.h>
#endif

KBEAM_KNOB(int, kWidth, 16, 8, 16);
KBEAM_KNOB(int, kUnroll, 2, 1, 2, 4, 8);            // independent accumulators
KBEAM_KNOB(int, kDegree, 6, 5, 6);                  // of the polynomial for 2^r
KBEAM_KNOB(int, kStaging, 1, 0, 1);                 // 0: the output itself is the staging row
KBEAM_KNOB(int, kStreaming, 1, 0, 1);               // 1: non-temporal stores where rows are aligned
KBEAM_KNOB(int, kPrefetch, 0, 0, 512, 1024, 4096);  // elements ahead, while the maximum is searched
KBEAM_REQUIRE(kStaging == 1 || kStreaming == 0,
              "only a staging row leaves the output to one streaming pass");

namespace {

using V = kbeam::Vector<float, kWidth>;
using I = kbeam::Vector<std::int32_t, kWidth>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kStep = kWidth * kUnroll;

template <int kLanes>
float most_lane(kbeam::Vector<float, kLanes> v) {
  if constexpr (kLanes == 1) {
    return v[0];
  } else {
    using Half = kbeam::Vector<float, kLanes / 2>;
    const float* lanes = reinterpret_cast<const float*>(&v);
    const Half low = kbeam::load<Half>(lanes);
    const Half high = kbeam::load<Half>(lanes + kLanes / 2);
    return most_lane<kLanes / 2>(low > high ? low : high);
  }
}

template <int kLanes>
float sum_lanes(kbeam::Vector<float, kLanes> v) {
  if constexpr (kLanes == 1) {
    return v[0];
  } else {
    using Half = kbeam::Vector<float, kLanes / 2>;
    const float* lanes = reinterpret_cast<const float*>(&v);
    return sum_lanes<kLanes / 2>(kbeam::load<Half>(lanes) + kbeam::load<Half>(lanes + kLanes / 2));
  }
}

// e^d times 2^64 for d <= 0, NaN for NaN, exactly 2^64 for zero. The bias keeps results below
// FLT_MIN normal until the last product rounds them. Multiplying by the power of two, not adding to
// the exponent field, keeps every NaN a NaN.
[[gnu::always_inline]] inline V biased_exp(V d) {
  constexpr float kMagic = 0x1.8p23f + 127 + 64;
  d = d < -130.0f ? V{} - 130.0f : d;
  const V shifted = d * 1.44269504f + kMagic;
  const V r = d * 1.44269504f - (shifted - kMagic);
  V p;
  if constexpr (kDegree == 6) {
    p = r * 0.000153458122f + 0.00133999312f;
    p = p * r + 0.00961848896f;
    p = p * r + 0.0555032878f;
    p = p * r + 0.240226469f;
    p = p * r + 0.693147206f;
    p = p * r + 1.0f;
  } else {
    p = r * 0.0013264726f + 0.00967151272f;
    p = p * r + 0.0555073375f;
    p = p * r + 0.240222421f;
    p = p * r + 0.693146978f;
    p = p * r + 1.0f;
  }
  return p * std::bit_cast<V>(std::bit_cast<I>(shifted) << 23);
}

// The last `count` < kWidth elements, with `fill` behind them.
V load_part(const float* from, std::int64_t count, float fill) {
  float lanes[kWidth];
  for (int lane = 0; lane < kWidth; ++lane) lanes[lane] = lane < count ? from[lane] : fill;
  return kbeam::load<V>(lanes);
}

[[gnu::always_inline]] inline void stream(float* to, V value) {
#if defined(__AVX512F__)
  if constexpr (kWidth == 16) {
    _mm512_stream_ps(to, _mm512_loadu_ps(&value));
    return;
  }
#endif
#if defined(__AVX__)
  if constexpr (kWidth == 8) {
    _mm256_stream_ps(to, _mm256_loadu_ps(reinterpret_cast<const float*>(&value)));
    return;
  }
#endif
  kbeam::store(to, value);
}

float largest(const float* x, std::int64_t columns) {
  V most[kUnroll];
  for (int u = 0; u < kUnroll; ++u) most[u] = V{} - kInfinity;
  std::int64_t j = 0;
  for (; j + kStep <= columns; j += kStep) {
    if constexpr (kPrefetch > 0)
      for (std::int64_t line = 0; line < kStep; line += 16)
        __builtin_prefetch(x + j + kPrefetch + line);
    for (int u = 0; u < kUnroll; ++u) {
      const V v = kbeam::load<V>(x + j + u * kWidth);
      most[u] = v > most[u] ? v : most[u];
    }
  }
  for (; j < columns; j += kWidth) {
    const V v =
        columns - j >= kWidth ? kbeam::load<V>(x + j) : load_part(x + j, columns - j, -kInfinity);
    most[0] = v > most[0] ? v : most[0];
  }
  for (int u = 1; u < kUnroll; ++u) most[0] = most[u] > most[0] ? most[u] : most[0];
  return most_lane<kWidth>(most[0]);
}

float exponentials(const float* x, float* staging, std::int64_t columns, float most) {
  V sums[kUnroll] = {};
  std::int64_t j = 0;
  for (; j + kStep <= columns; j += kStep) {
    for (int u = 0; u < kUnroll; ++u) {
      const V e = biased_exp(kbeam::load<V>(x + j + u * kWidth) - most);
      kbeam::store(staging + j + u * kWidth, e);
      sums[u] += e;
    }
  }
  for (; j + kWidth <= columns; j += kWidth) {
    const V e = biased_exp(kbeam::load<V>(x + j) - most);
    kbeam::store(staging + j, e);
    sums[0] += e;
  }
  if (j < columns) {
    const V e = biased_exp(load_part(x + j, columns - j, most) - most);
    for (int lane = 0; lane < columns - j; ++lane) {
      staging[j + lane] = e[lane];
      sums[0][lane] += e[lane];
    }
  }
  for (int u = 1; u < kUnroll; ++u) sums[0] += sums[u];
  return sum_lanes<kWidth>(sums[0]);
}

void scale(const float* staging, float* y, std::int64_t columns, float inverse) {
  std::int64_t j = 0;
  if (kStreaming == 1 && reinterpret_cast<std::uintptr_t>(y) % (kWidth * sizeof(float)) == 0) {
    for (; j + kWidth <= columns; j += kWidth) stream(y + j, kbeam::load<V>(staging + j) * inverse);
  } else {
    for (; j + kWidth <= columns; j += kWidth)
      kbeam::store(y + j, kbeam::load<V>(staging + j) * inverse);
  }
  for (; j < columns; ++j) y[j] = staging[j] * inverse;
}

void softmax_rows(kbeam::Range rows, const float* x, float* y, float* staging,
                  std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* from = x + row * columns;
    float* to = y + row * columns;
    float* kept = kStaging == 1 ? staging : to;
    const float sum = exponentials(from, kept, columns, largest(from, columns));
    scale(kept, to, columns, 1 / sum);
  }
#if defined(__AVX__)
  if constexpr (kStreaming == 1) _mm_sfence();  // the next step may run on another core
#endif
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto y = args.output<float>("y");
  auto staging = plan.worker_scratch<float>(x.dim(1));
  plan.parallel_for(x.dim(0), 0, softmax_rows, x, y, staging, x.dim(1));
}
