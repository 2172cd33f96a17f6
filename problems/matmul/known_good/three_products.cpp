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

// To the nearest number with 11 bits.
float narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000u);
}

struct Parts {
  float high, low;
  explicit Parts(float value) : high(narrow(value)), low(narrow(value - high)) {}
  // Whether the two parts hold the value: below 2^-100 the second may be subnormal.
  bool complete() const { return std::isfinite(low) && (high == 0 || std::fabs(high) > 0x1p-100f); }
};

float plain_sum(const float* a, const float* b, const Shape& s) {
  float sum = 0;
  for (std::int64_t l = 0; l < s.k; ++l) sum += a[l] * b[l * s.n];
  return sum;
}

void multiply_rows(kbeam::Range rows, const float* a_all, const float* b_all, float* c_all,
                   Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const a = a_all + row * s.k;
    const float* const b = b_all + row / s.m * s.k * s.n;
    float* const c = c_all + row * s.n;
    for (std::int64_t j = 0; j < s.n; ++j) {
      float high = 0, low = 0;
      bool plain = false;
      float part = 0;
      for (std::int64_t l = 0; l < s.k; ++l) {
        const Parts x(a[l]), y(b[l * s.n + j]);
        plain |= !x.complete() || !y.complete();
        part += x.high * y.high;
        low += x.high * y.low + x.low * y.high;
        if (l % 32 == 31) {
          high += part;
          part = 0;
        }
      }
      c[j] = plain ? plain_sum(a, b + j, s) : high + part + low;
    }
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
