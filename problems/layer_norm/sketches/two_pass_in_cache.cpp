// One row at a time in three sweeps, the first from memory, the others from the cache: sum, squares
// of the differences, result. Accumulators, stores and prefetch are knobs.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

#if defined(__AVX__)
#include <immintrin.h>
#endif

KBEAM_KNOB(int, kWidth, 16, 8, 16);
KBEAM_KNOB(int, kUnroll, 4, 2, 4, 8, 16);           // independent accumulators
KBEAM_KNOB(int, kStreaming, 0, 0, 1);               // 1: non-temporal stores where rows are aligned
KBEAM_KNOB(int, kPrefetch, 0, 0, 512, 1024, 4096);  // elements ahead, in the first sweep

namespace {

using V = kbeam::Vector<float, kWidth>;
constexpr float kEpsilon = 1e-5f;

struct Affine {
  const float* gamma;
  const float* beta;
};

// By halves, in registers.
template <int kLanes>
float sum_lanes(kbeam::Vector<float, kLanes> v) {
  if constexpr (kLanes == 1) {
    return v[0];
  } else {
    using Half = kbeam::Vector<float, kLanes / 2>;
    const float* const lanes = reinterpret_cast<const float*>(&v);
    return sum_lanes<kLanes / 2>(kbeam::load<Half>(lanes) + kbeam::load<Half>(lanes + kLanes / 2));
  }
}

// For rows whose squares leave the range, and for rows with a NaN or Inf.
[[gnu::noinline]] void normalise_in_double(const float* x, float* y, std::int64_t columns,
                                           Affine affine) {
  double total = 0, squares = 0;
  for (std::int64_t j = 0; j < columns; ++j) total += x[j];
  const double mean = total / static_cast<double>(columns);
  for (std::int64_t j = 0; j < columns; ++j) squares += (x[j] - mean) * (x[j] - mean);
  const double inverse = 1 / std::sqrt(squares / static_cast<double>(columns) + kEpsilon);
  for (std::int64_t j = 0; j < columns; ++j)
    y[j] = static_cast<float>((x[j] - mean) * inverse * affine.gamma[j] + affine.beta[j]);
}

template <typename Wide>
void put(float* to, Wide value, bool streaming) {
#if defined(__AVX512F__)
  if constexpr (sizeof value == 64)
    if (streaming) return _mm512_stream_ps(to, __m512(value));
#endif
#if defined(__AVX__)
  if constexpr (sizeof value == 32)
    if (streaming) return _mm256_stream_ps(to, __m256(value));
#endif
  kbeam::store(to, value);
}

// Non-temporal stores need whole aligned vectors and rows that leave the cache anyway.
bool may_stream(const float* y, std::int64_t columns) {
  return kStreaming == 1 && columns % kWidth == 0 &&
         reinterpret_cast<std::uintptr_t>(y) % (kWidth * sizeof(float)) == 0;
}

void write_row(const float* __restrict x, float* __restrict y, std::int64_t columns, float mean,
               float inverse, Affine affine) {
  const bool streaming = may_stream(y, columns);
  std::int64_t j = 0;
  for (; j + kWidth <= columns; j += kWidth) {
    const V gamma = kbeam::load<V>(affine.gamma + j), beta = kbeam::load<V>(affine.beta + j);
    put(y + j, (kbeam::load<V>(x + j) - mean) * inverse * gamma + beta, streaming);
  }
  for (; j < columns; ++j) y[j] = (x[j] - mean) * inverse * affine.gamma[j] + affine.beta[j];
}

template <bool kSquares>
float sweep(const float* x, std::int64_t columns, float mean) {
  V sums[kUnroll] = {};
  std::int64_t j = 0;
  for (; j + kWidth * kUnroll <= columns; j += kWidth * kUnroll) {
    if constexpr (kPrefetch > 0 && !kSquares) __builtin_prefetch(x + j + kPrefetch);
    for (int u = 0; u < kUnroll; ++u) {
      const V value = kbeam::load<V>(x + j + u * kWidth) - (kSquares ? mean : 0.0f);
      sums[u] += kSquares ? value * value : value;
    }
  }
  for (int half = kUnroll / 2; half > 0; half /= 2)
    for (int u = 0; u < half; ++u) sums[u] += sums[u + half];
  float total = sum_lanes<kWidth>(sums[0]);
  float rest = 0;
  for (; j < columns; ++j) {
    const float value = x[j] - (kSquares ? mean : 0.0f);
    rest += kSquares ? value * value : value;
  }
  return total + rest;
}

void normalise_row(const float* x, float* y, std::int64_t columns, Affine affine) {
  const auto count = static_cast<float>(columns);
  const float mean = sweep<false>(x, columns, 0) / count;
  const float squares = sweep<true>(x, columns, mean);
  if (!std::isfinite(squares)) return normalise_in_double(x, y, columns, affine);
  write_row(x, y, columns, mean, 1 / std::sqrt(squares / count + kEpsilon), affine);
}

void normalise_rows(kbeam::Range rows, const float* x, const float* gamma, const float* beta,
                    float* y, std::int64_t columns) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row)
    normalise_row(x + row * columns, y + row * columns, columns, {gamma, beta});
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto gamma = args.input<float>("gamma");
  const auto beta = args.input<float>("beta");
  const auto y = args.output<float>("y");
  plan.parallel_for(x.dim(0), 0, normalise_rows, x, gamma, beta, y, x.dim(1));
}
