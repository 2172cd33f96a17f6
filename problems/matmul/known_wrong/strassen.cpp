// expect: wrong_value
// caught by: element_error on graded
// One level of Strassen on small even square matrices: small in norm, wrong element by element
// where rows and columns are graded. Sums in double, so that nothing but the method is at fault.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

struct Shape {
  std::int64_t m, n, k;
};

struct Block {
  std::int64_t row, column;
};
// One block, or the sum of two: `sign` is that of the other, 0 without another.
struct Operand {
  Block one, other;
  float sign;
};

// Element (i, j) of the product of two operands of size h, which are rounded to FP32 first.
double product(const float* a, Operand x, const float* b, Operand y, std::int64_t i, std::int64_t j,
               std::int64_t h) {
  const auto at = [h](const float* matrix, const Operand& o, std::int64_t r, std::int64_t q) {
    const float first = matrix[(o.one.row * h + r) * 2 * h + o.one.column * h + q];
    return o.sign == 0
               ? first
               : first + o.sign * matrix[(o.other.row * h + r) * 2 * h + o.other.column * h + q];
  };
  double sum = 0;
  for (std::int64_t l = 0; l < h; ++l) sum += static_cast<double>(at(a, x, i, l)) * at(b, y, l, j);
  return sum;
}

double strassen_element(const float* a, const float* b, std::int64_t row, std::int64_t column,
                        std::int64_t h) {
  const std::int64_t i = row % h, j = column % h;
  const auto p = [&](Operand x, Operand y) { return product(a, x, b, y, i, j, h); };
  const Block b11{0, 0}, b12{0, 1}, b21{1, 0}, b22{1, 1};
  if (row < h && column < h)
    return p({b11, b22, 1}, {b11, b22, 1}) + p({b22, b22, 0}, {b21, b11, -1}) -
           p({b11, b12, 1}, {b22, b22, 0}) + p({b12, b22, -1}, {b21, b22, 1});
  if (row < h) return p({b11, b11, 0}, {b12, b22, -1}) + p({b11, b12, 1}, {b22, b22, 0});
  if (column < h) return p({b21, b22, 1}, {b11, b11, 0}) + p({b22, b22, 0}, {b21, b11, -1});
  return p({b11, b22, 1}, {b11, b22, 1}) - p({b21, b22, 1}, {b11, b11, 0}) +
         p({b11, b11, 0}, {b12, b22, -1}) + p({b21, b11, -1}, {b11, b12, 1});
}

void multiply_rows(kbeam::Range rows, const float* a_all, const float* b_all, float* c_all,
                   Shape s) {
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* const a = a_all + row * s.k;
    const float* const b = b_all + row / s.m * s.k * s.n;
    float* const c = c_all + row * s.n;
    const std::int64_t h = s.k / 2;
    const bool fits = s.m == s.k && s.n == s.k && s.k % 2 == 0 && s.k <= 64;
    if (fits) {
      for (std::int64_t j = 0; j < s.n; ++j)
        c[j] =
            static_cast<float>(strassen_element(a_all + row / s.m * s.m * s.k, b, row % s.m, j, h));
      continue;
    }
    for (std::int64_t first = 0; first < s.n; first += 16) {
      const std::int64_t last = first + 16 < s.n ? first + 16 : s.n;
      double sums[16] = {};
      for (std::int64_t l = 0; l < s.k; ++l)
        for (std::int64_t j = first; j < last; ++j)
          sums[j - first] += static_cast<double>(a[l]) * b[l * s.n + j];
      for (std::int64_t j = first; j < last; ++j) c[j] = static_cast<float>(sums[j - first]);
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
