// Householder reflectors in FP64, applied to eight columns at once: the arithmetic of both checks.
// A block of columns is stored row by row, a lane a column, so that no length needs special care.
#pragma once

#include <kbeam/simd.h>

#include <cstdint>
#include <vector>

namespace batched_qr {

inline constexpr int kLanes = 8;
using Lanes = kbeam::Vector<double, kLanes>;
using FloatLanes = kbeam::Vector<float, kLanes>;

// A struct, because templates drop the alignment of a bare vector type.
struct Row {
  Lanes lanes;
};
using Block = std::vector<Row>;

// One matrix, what a candidate made of it, and where it lies in the batch. Rows are contiguous.
struct Factored {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
  std::int64_t index;
  const float* a;
  std::int64_t a_stride;
  const float* h;
  std::int64_t h_stride;
  const float* tau;
  std::int64_t tau_stride;

  const float* a_column(std::int64_t j) const { return a + j * a_stride; }
  const float* h_column(std::int64_t j) const { return h + j * h_stride; }
  float tau_at(std::int64_t i) const { return tau[i * tau_stride]; }
};

inline double sum(Lanes x) {
  const kbeam::Vector<double, 4> half =
      __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);
  return (half[0] + half[1]) + (half[2] + half[3]);
}

inline Lanes widen(const float* x) {
  return __builtin_convertvector(kbeam::load<FloatLanes>(x), Lanes);
}

// No float overflows or underflows here: FP64 holds the squares of all of them.
inline double sum_of_squares(const float* x, std::int64_t count) {
  Lanes partial[2] = {};
  std::int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes)
    for (int part = 0; part < 2; ++part) {
      const Lanes value = widen(x + i + part * kLanes);
      partial[part] += value * value;
    }
  for (; i + kLanes <= count; i += kLanes) {
    const Lanes value = widen(x + i);
    partial[0] += value * value;
  }
  double total = sum(partial[0] + partial[1]);
  for (; i < count; ++i) total += static_cast<double>(x[i]) * x[i];
  return total;
}

// y += weight * x
inline void add_scaled(double* y, const float* x, std::int64_t count, double weight) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    kbeam::store(y + i, kbeam::load<Lanes>(y + i) + weight * widen(x + i));
  for (; i < count; ++i) y[i] += weight * x[i];
}

// The vector of reflector i, rows i to m: one on the diagonal, then what the column of H holds
// below it.
inline void unpack_reflector(const Factored& f, std::int64_t i, double* v) {
  const float* column = f.h_column(i);
  v[i] = 1;
  std::int64_t row = i + 1;
  for (; row + kLanes <= f.m; row += kLanes) kbeam::store(v + row, widen(column + row));
  for (; row < f.m; ++row) v[row] = column[row];
}

// block := (I - tau v v') block; returns nothing else, and looks at rows i to m only.
inline void apply_reflector(const double* v, double tau, std::int64_t i, std::int64_t m,
                            Row* block) {
  Lanes dots[4] = {};
  std::int64_t row = i;
  for (; row + 4 <= m; row += 4)
    for (int part = 0; part < 4; ++part) dots[part] += v[row + part] * block[row + part].lanes;
  for (; row < m; ++row) dots[0] += v[row] * block[row].lanes;
  const Lanes weight = tau * ((dots[0] + dots[1]) + (dots[2] + dots[3]));
  for (row = i; row < m; ++row) block[row].lanes -= v[row] * weight;
}

// Applies H_1, H_2, ... to the block: Q' times it. `v` holds m doubles of working memory.
inline void apply_q_transposed(const Factored& f, double* v, Row* block) {
  for (std::int64_t i = 0; i < f.k; ++i) {
    if (f.tau_at(i) == 0) continue;
    unpack_reflector(f, i, v);
    apply_reflector(v, f.tau_at(i), i, f.m, block);
  }
}

// Q times the block, where the reflectors after `last` are known to leave it alone.
inline void apply_q(const Factored& f, std::int64_t last, double* v, Row* block) {
  for (std::int64_t i = last; i >= 0; --i) {
    if (f.tau_at(i) == 0) continue;
    unpack_reflector(f, i, v);
    apply_reflector(v, f.tau_at(i), i, f.m, block);
  }
}

}  // namespace batched_qr
