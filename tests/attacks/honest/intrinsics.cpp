// Intrinsics, with stores that bypass the cache where a row allows them.
#include <immintrin.h>
#include <kbeam/candidate.h>

#include <cmath>
#include <cstdint>

namespace {

double squared_length(const float* from, std::int64_t columns) {
  double sum = 0;
  std::int64_t j = 0;
#if defined(__AVX__)
  __m256d sums = _mm256_setzero_pd();
  for (; j + 4 <= columns; j += 4) {
    const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(from + j));
    sums = _mm256_add_pd(sums, _mm256_mul_pd(v, v));
  }
  alignas(32) double lanes[4];
  _mm256_store_pd(lanes, sums);
  sum = lanes[0] + lanes[1] + lanes[2] + lanes[3];
#endif
  for (; j < columns; ++j) sum += double{from[j]} * from[j];
  return sum;
}

void run(kbeam::Range range, const float* x, float* y, std::int64_t columns) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const float* from = x + row * columns;
    float* to = y + row * columns;
    const double length = std::sqrt(squared_length(from, columns));
    std::int64_t j = 0;
    if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0)
      for (; j + 4 <= columns; j += 4) {
        float four[4];
        for (int lane = 0; lane < 4; ++lane)
          four[lane] = static_cast<float>(from[j + lane] / length);
        _mm_stream_ps(to + j, _mm_loadu_ps(four));
      }
    for (; j < columns; ++j) to[j] = static_cast<float>(from[j] / length);
  }
  _mm_sfence();
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  plan.parallel_for(x.dim(0), 0, run, x, args.output<float>("y"), x.dim(1));
}
