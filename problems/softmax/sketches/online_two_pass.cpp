// One row at a time in two passes: maximum and sum together, rescaling the sum when a block raises
// the maximum; then the result straight to the output. Exponentials are computed twice, but hidden
// behind the first reading of the row.
#include <kbeam/candidate.h>

#include <bit>
#include <limits>

#if defined(__AVX__)
#include <immintrin.h>
#endif

KBEAM_KNOB(int, kWidth, 16, 8, 16);
KBEAM_KNOB(int, kBlock, 4, 2, 4, 8);                // vectors that share one look at the maximum
KBEAM_KNOB(int, kDegree, 6, 5, 6);                  // of the polynomial for 2^r
KBEAM_KNOB(int, kStreaming, 1, 0, 1);               // 1: non-temporal stores where rows are aligned
KBEAM_KNOB(int, kPrefetch, 0, 0, 512, 1024, 4096);  // elements ahead, in the first pass

namespace {

using V = kbeam::Vector<float, kWidth>;
using I = kbeam::Vector<std::int32_t, kWidth>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kStep = kWidth * kBlock;

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

// What a lane has seen: its maximum, and the sum of its exponentials times 2^64 against that
// maximum.
struct Running {
  V most = V{} - kInfinity;
  V sum = {};
};

// A lane that has seen only -Inf has the sum zero; subtracting zero in its place keeps that sum
// from NaN.
[[gnu::always_inline]] inline V reference(V most) {
  return most == -kInfinity ? V{} : most;
}

template <int kCount>
[[gnu::always_inline]] inline void absorb(Running& running, const V (&values)[kCount]) {
  V most = running.most;
  for (int u = 0; u < kCount; ++u) most = values[u] > most ? values[u] : most;
  const V against = reference(most);
  running.sum *= biased_exp(running.most - against) * 0x1p-64f;
  for (int u = 0; u < kCount; ++u) running.sum += biased_exp(values[u] - against);
  running.most = most;
}

struct RowFacts {
  float most;
  float inverse;
};

RowFacts survey(const float* x, std::int64_t columns) {
  Running running;
  std::int64_t j = 0;
  for (; j + kStep <= columns; j += kStep) {
    if constexpr (kPrefetch > 0)
      for (std::int64_t line = 0; line < kStep; line += 16)
        __builtin_prefetch(x + j + kPrefetch + line);
    V values[kBlock];
    for (int u = 0; u < kBlock; ++u) values[u] = kbeam::load<V>(x + j + u * kWidth);
    absorb(running, values);
  }
  for (; j < columns; j += kWidth) {
    const V rest[1] = {columns - j >= kWidth ? kbeam::load<V>(x + j)
                                             : load_part(x + j, columns - j, -kInfinity)};
    absorb(running, rest);
  }
  const float most = most_lane<kWidth>(running.most);
  // Against the row's own maximum at last: -Inf alone or a +Inf becomes NaN here, as declared.
  const V factor = biased_exp(running.most - most) * 0x1p-64f;
  return {most, 1 / sum_lanes<kWidth>(running.sum * factor)};
}

template <int kStreamed>
void write_row(const float* x, float* y, std::int64_t columns, RowFacts facts) {
  std::int64_t j = 0;
  for (; j + kStep <= columns; j += kStep) {
    for (int u = 0; u < kBlock; ++u) {
      const V result = biased_exp(kbeam::load<V>(x + j + u * kWidth) - facts.most) * facts.inverse;
      if constexpr (kStreamed == 1) {
        stream(y + j + u * kWidth, result);
      } else {
        kbeam::store(y + j + u * kWidth, result);
      }
    }
  }
  for (; j + kWidth <= columns; j += kWidth)
    kbeam::store(y + j, biased_exp(kbeam::load<V>(x + j) - facts.most) * facts.inverse);
  if (j < columns) {
    const V result =
        biased_exp(load_part(x + j, columns - j, facts.most) - facts.most) * facts.inverse;
    for (int lane = 0; lane < columns - j; ++lane) y[j + lane] = result[lane];
  }
}

void softmax_rows(kbeam::Range rows, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* from = x + row * columns;
    float* to = y + row * columns;
    const RowFacts facts = survey(from, columns);
    if (kStreaming == 1 && reinterpret_cast<std::uintptr_t>(to) % (kWidth * sizeof(float)) == 0) {
      write_row<kStreaming>(from, to, columns, facts);
    } else {
      write_row<0>(from, to, columns, facts);
    }
  }
#if defined(__AVX__)
  if constexpr (kStreaming == 1) _mm_sfence();  // the next step may run on another core
#endif
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto x = args.input<float>("x");
  auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, softmax_rows, x, y, x.dim(1));
}
