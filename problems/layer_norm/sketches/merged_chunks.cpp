// Mean and variance in one reading: every chunk is normalised about its own mean in registers, lane
// by lane, and merged into the running moments, so nothing cancels. A second reading writes the
// result.
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

#if defined(__AVX__)
#include <immintrin.h>
#endif

KBEAM_KNOB(int, kWidth, 16, 8, 16);
KBEAM_KNOB(int, kChunk, 8, 4, 8, 16);               // vectors that share one merge
KBEAM_KNOB(int, kStreaming, 0, 0, 1);               // 1: non-temporal stores where rows are aligned
KBEAM_KNOB(int, kPrefetch, 0, 0, 512, 1024, 4096);  // elements ahead, in the first reading

namespace {

using V = kbeam::Vector<float, kWidth>;
constexpr float kEpsilon = 1e-5f;

struct Affine {
  const float* gamma;
  const float* beta;
};

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

// Of one lane, or of several that were merged.
struct Moments {
  float count = 0;
  float mean = 0;
  float squares = 0;  // of the distances from the mean

  void merge(const Moments& other) {
    if (other.count == 0) return;
    const float total = count + other.count;
    const float away = other.mean - mean;
    squares += other.squares + away * away * (count * (other.count / total));
    mean += away * (other.count / total);
    count = total;
  }
};

Moments measure(const float* x, std::int64_t columns) {
  V mean = {}, squares = {};
  float count = 0;
  std::int64_t j = 0;
  for (; j + kWidth * kChunk <= columns; j += kWidth * kChunk) {
    if constexpr (kPrefetch > 0) __builtin_prefetch(x + j + kPrefetch);
    V values[kChunk], sum = {}, chunk_squares = {};
    for (int u = 0; u < kChunk; ++u) sum += values[u] = kbeam::load<V>(x + j + u * kWidth);
    const V chunk_mean = sum * (1.0f / kChunk);
    for (int u = 0; u < kChunk; ++u)
      chunk_squares += (values[u] - chunk_mean) * (values[u] - chunk_mean);
    const float share = kChunk / (count + kChunk);
    const V away = chunk_mean - mean;
    mean += away * share;
    squares += chunk_squares + away * away * (count * share);
    count += kChunk;
  }
  Moments lanes[kWidth];
  for (int lane = 0; lane < kWidth; ++lane) lanes[lane] = {count, mean[lane], squares[lane]};
  for (int half = kWidth / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) lanes[lane].merge(lanes[lane + half]);
  if (j < columns) {  // less than a chunk is left
    Moments rest{static_cast<float>(columns - j)};
    float sum = 0;
    for (std::int64_t i = j; i < columns; ++i) sum += x[i];
    rest.mean = sum / rest.count;
    for (std::int64_t i = j; i < columns; ++i)
      rest.squares += (x[i] - rest.mean) * (x[i] - rest.mean);
    lanes[0].merge(rest);
  }
  return lanes[0];
}

void normalise_row(const float* x, float* y, std::int64_t columns, Affine affine) {
  const Moments moments = measure(x, columns);
  if (!std::isfinite(moments.squares)) return normalise_in_double(x, y, columns, affine);
  const float variance = moments.squares / static_cast<float>(columns);
  write_row(x, y, columns, moments.mean, 1 / std::sqrt(variance + kEpsilon), affine);
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
