// Every factor as two numbers of 11 bits and three products of these, as tensor cores would: FP32
// grade, although no product has more than 22 bits. Where a NaN, an Inf or a number near the
// subnormal range is met, one plain product.
#include <kbeam/candidate.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

constexpr std::int64_t kStrip = 16;  // columns at a time

// To the nearest number with 11 bits.
float narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000u);
}

struct Parts {
  float high, low;
  explicit Parts(float value) : high(narrow(value)), low(narrow(value - high)) {}
};

// Whether two parts hold the value: not a NaN or Inf, and not so small that the second part would
// be subnormal.
bool splits(float value) {
  const float size = std::fabs(value);
  return value == 0 || (size > 0x1p-100f && size < 0x1p127f);
}

void multiply_plainly(const float* a, const float* b, float* c, const Shape& s,
                      std::int64_t columns) {
  float sums[kStrip] = {};
  for (std::int64_t l = 0; l < s.k; ++l)
    for (std::int64_t j = 0; j < columns; ++j) sums[j] += a[l] * b[l * s.n + j];
  for (std::int64_t j = 0; j < columns; ++j) c[j] = sums[j];
}

void multiply_strip(const float* a, const float* b, float* c, const Shape& s,
                    std::int64_t columns) {
  float high[kStrip] = {}, low[kStrip] = {}, part[kStrip] = {};
  int unsplit = 0;  // an int, so that the compiler can vectorise
  for (std::int64_t l = 0; l < s.k; ++l) {
    const Parts x(a[l]);
    unsplit |= splits(a[l]) ? 0 : 1;
    for (std::int64_t j = 0; j < columns; ++j) {
      const Parts y(b[l * s.n + j]);
      unsplit |= splits(b[l * s.n + j]) ? 0 : 1;
      part[j] += x.high * y.high;
      low[j] += x.high * y.low + x.low * y.high;
    }
    if (l % 32 == 31)
      for (std::int64_t j = 0; j < columns; ++j) {
        high[j] += part[j];
        part[j] = 0;
      }
  }
  if (unsplit != 0) return multiply_plainly(a, b, c, s, columns);
  for (std::int64_t j = 0; j < columns; ++j) c[j] = high[j] + part[j] + low[j];
}

void multiply_rows(kbeam::Range rows, const float* a_all, const float* b_all, float* c_all,
                   Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const a = a_all + row * s.k;
    const float* const b = b_all + row / s.m * s.k * s.n;
    float* const c = c_all + row * s.n;
    for (std::int64_t first = 0; first < s.n; first += kStrip)
      multiply_strip(a, b + first, c + first, s, s.n - first < kStrip ? s.n - first : kStrip);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Shape shape{c.dim(1), c.dim(2), a.dim(2)};
  plan.parallel_for(c.dim(0) * shape.m, 0, multiply_rows, a, b, c, shape);
}
