// Short rows live in registers: kRows rows are loaded once, reduced, exponentiated and stored once,
// side by side so that their reductions overlap. Rows too long for the registers go through a
// staging row that stays in the cache.
#include <kbeam/candidate.h>

#include <bit>
#include <limits>

#if defined(__AVX__)
#include <immintrin.h>
#endif

KBEAM_KNOB(int, kWidth, 16, 8, 16);
KBEAM_KNOB(int, kRows, 2, 1, 2, 4);
KBEAM_KNOB(int, kMostVectors, 8, 4, 8);       // of one row in registers
KBEAM_KNOB(int, kUnroll, 4, 2, 4, 8);         // vectors side by side in longer rows
KBEAM_KNOB(int, kDegree, 6, 5, 6);            // of the polynomial for 2^r
KBEAM_KNOB(int, kStreaming, 1, 0, 1);         // 1: non-temporal stores where rows are aligned
KBEAM_KNOB(int, kPrefetch, 0, 0, 512, 2048);  // elements ahead
KBEAM_REQUIRE(kRows* kMostVectors <= 32, "the rows fit into the vector registers");

namespace {

using V = kbeam::Vector<float, kWidth>;
using I = kbeam::Vector<std::int32_t, kWidth>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

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

[[gnu::always_inline]] inline void put(float* to, V value, int streamed) {
  if (streamed == 1) {
    stream(to, value);
  } else {
    kbeam::store(to, value);
  }
}

bool aligned(const float* y) {
  return reinterpret_cast<std::uintptr_t>(y) % (kWidth * sizeof(float)) == 0;
}

// kCount rows of exactly kVectors whole vectors.
template <int kCount, int kVectors>
[[gnu::always_inline]] inline void whole_rows(const float* x, float* y, int streamed) {
  constexpr std::int64_t kColumns = kVectors * kWidth;
  V values[kCount][kVectors];
  float most[kCount];
  float inverse[kCount];
  for (int row = 0; row < kCount; ++row)
    for (int v = 0; v < kVectors; ++v)
      values[row][v] = kbeam::load<V>(x + row * kColumns + v * kWidth);
  if constexpr (kPrefetch > 0)
    for (std::int64_t line = 0; line < kCount * kColumns; line += 16)
      __builtin_prefetch(x + kPrefetch + line);
  for (int row = 0; row < kCount; ++row) {
    V highest = values[row][0];
    for (int v = 1; v < kVectors; ++v)
      highest = values[row][v] > highest ? values[row][v] : highest;
    most[row] = most_lane<kWidth>(highest);
  }
  for (int row = 0; row < kCount; ++row) {
    V sum = {};
    for (int v = 0; v < kVectors; ++v)
      sum += values[row][v] = biased_exp(values[row][v] - most[row]);
    inverse[row] = 1 / sum_lanes<kWidth>(sum);
  }
  for (int row = 0; row < kCount; ++row)
    for (int v = 0; v < kVectors; ++v)
      put(y + row * kColumns + v * kWidth, values[row][v] * inverse[row], streamed);
}

// Any row: through the staging row.
void long_row(const float* x, float* y, float* staging, std::int64_t columns) {
  constexpr std::int64_t kStep = kWidth * kUnroll;
  V most[kUnroll];
  V sums[kUnroll] = {};
  for (int u = 0; u < kUnroll; ++u) most[u] = V{} - kInfinity;
  std::int64_t whole = 0;
  for (; whole + kStep <= columns; whole += kStep) {
    if constexpr (kPrefetch > 0)
      for (std::int64_t line = 0; line < kStep; line += 16)
        __builtin_prefetch(x + whole + kPrefetch + line);
    for (int u = 0; u < kUnroll; ++u) {
      const V v = kbeam::load<V>(x + whole + u * kWidth);
      most[u] = v > most[u] ? v : most[u];
    }
  }
  for (std::int64_t j = whole; j < columns; j += kWidth) {
    const V v = load_part(x + j, columns - j, -kInfinity);
    most[0] = v > most[0] ? v : most[0];
  }
  for (int u = 1; u < kUnroll; ++u) most[0] = most[u] > most[0] ? most[u] : most[0];
  const float row_most = most_lane<kWidth>(most[0]);

  for (std::int64_t j = 0; j < whole; j += kStep) {
    for (int u = 0; u < kUnroll; ++u) {
      const V e = biased_exp(kbeam::load<V>(x + j + u * kWidth) - row_most);
      kbeam::store(staging + j + u * kWidth, e);
      sums[u] += e;
    }
  }
  for (std::int64_t j = whole; j < columns; j += kWidth) {  // staging is padded to whole vectors
    V e = biased_exp(load_part(x + j, columns - j, row_most) - row_most);
    kbeam::store(staging + j, e);
    for (int lane = 0; lane < kWidth; ++lane) e[lane] = j + lane < columns ? e[lane] : 0.0f;
    sums[0] += e;
  }
  for (int u = 1; u < kUnroll; ++u) sums[0] += sums[u];
  const float inverse = 1 / sum_lanes<kWidth>(sums[0]);

  const int streamed = kStreaming == 1 && aligned(y) ? 1 : 0;
  std::int64_t j = 0;
  for (; j + kWidth <= columns; j += kWidth)
    put(y + j, kbeam::load<V>(staging + j) * inverse, streamed);
  for (; j < columns; ++j) y[j] = staging[j] * inverse;
}

template <int kVectors>
void rows_of(kbeam::Range rows, const float* x, float* y) {
  constexpr std::int64_t kColumns = kVectors * kWidth;
  const int streamed = kStreaming == 1 && aligned(y) ? 1 : 0;
  std::int64_t row = rows.begin;
  for (; row + kRows <= rows.end; row += kRows)
    whole_rows<kRows, kVectors>(x + row * kColumns, y + row * kColumns, streamed);
  for (; row < rows.end; ++row)
    whole_rows<1, kVectors>(x + row * kColumns, y + row * kColumns, streamed);
}

// Whether a row is 1, 2, ... kVectors whole vectors, and then done.
template <int kVectors>
bool rows_in_registers(kbeam::Range rows, const float* x, float* y, std::int64_t columns) {
  if constexpr (kVectors == 0) {
    return false;
  } else {
    if (columns != kVectors * kWidth) return rows_in_registers<kVectors - 1>(rows, x, y, columns);
    rows_of<kVectors>(rows, x, y);
    return true;
  }
}

void softmax_rows(kbeam::Range rows, const float* x, float* y, float* staging,
                  std::int64_t columns) {
  if (!rows_in_registers<kMostVectors>(rows, x, y, columns))
    for (std::int64_t row = rows.begin; row < rows.end; ++row)
      long_row(x + row * columns, y + row * columns, staging, columns);
#if defined(__AVX__)
  if constexpr (kStreaming == 1) _mm_sfence();  // the next step may run on another core
#endif
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto y = args.output<float>("y");
  auto staging = plan.worker_scratch<float>(x.dim(1) + kWidth);
  plan.parallel_for(x.dim(0), 0, softmax_rows, x, y, staging, x.dim(1));
}
