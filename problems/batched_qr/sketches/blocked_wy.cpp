// Right-looking blocked QR on a padded copy in column-major order: a panel is factored one
// reflector at a time, its V is packed by rows and by columns, and two register-tiled products
// apply the compact WY form I - V T'V' to what is left.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

KBEAM_KNOB(int, kWidth, 16, 4, 8, 16);            // floats a vector
KBEAM_KNOB(int, kPanel, 16, 16, 32, 48, 64);      // columns a panel
KBEAM_KNOB(int, kTileVectors, 1, 1, 2, 3);        // register tile of A -= V W: vectors of rows
KBEAM_KNOB(int, kTileColumns, 2, 1, 2, 4, 6, 8);  // register tile of both products: columns
KBEAM_KNOB(int, kColumns, 1, 1, 2, 4, 8);  // columns of a panel that share each load of a reflector
KBEAM_KNOB(int, kPad, 0, 0, 1, 3);         // empty vectors between columns, against 4 KiB aliasing
KBEAM_KNOB(int, kPrefetch, 0, 0, 1);       // 1: fetch the next matrix while this one is factored
KBEAM_REQUIRE(kPanel % kWidth == 0, "a row of V holds whole vectors");
KBEAM_REQUIRE(24 >= kPanel / kWidth * kTileColumns,
              "the register tile of W = V'A has to fit the registers");
KBEAM_REQUIRE(24 >= kTileVectors * kTileColumns,
              "the register tile of A -= V W has to fit the registers");

namespace {

using Row = kbeam::Vector<float, kWidth>;
// As kbeam::load and store, but the compiler folds these into its arithmetic more often.
using RowInMemory [[gnu::aligned(4), gnu::may_alias]] = Row;
Row get(const float* from) {
  return *reinterpret_cast<const RowInMemory*>(from);
}
void store(float* to, Row value) {
  *reinterpret_cast<RowInMemory*>(to) = value;
}

constexpr int kTiny = 8;  // up to this size the plain path is more accurate, and fast enough
// Columns are used as they are while their sums of squares are in the first range, and a reflector
// is made in single precision while that of its column's tail is in the second: then no product
// over- or underflows to any effect.
constexpr float kColumnLow = 0x1p-60f, kColumnHigh = 0x1p60f;
constexpr float kTailLow = 0x1p-80f, kTailHigh = 0x1p80f;

struct Shape {
  int m, n, k;
  int rows;    // m rounded up to whole vectors; the rows beyond m are zero
  int stride;  // floats from one padded column to the next
};

// What one worker needs for one matrix.
struct Work {
  float* x;          // the padded matrix, factored in place
  float* scale;      // the power of two that each column was multiplied by
  float* v;          // the reflector in work, with its 1 and zeros above
  float* v_columns;  // a panel's V by columns, unit diagonal and zeros included
  float* v_rows;     // the same by rows of kPanel
  float* t;          // the panel's T, by rows of kPanel
  float* gram;       // V'V, by rows of kPanel
  float* w;          // V'A and then T'V'A, kPanel a column
};

std::int64_t work_floats(const Shape& shape) {
  return std::int64_t{shape.stride} * shape.n + (shape.n + 15) / 16 * 16 + shape.rows +
         2 * std::int64_t{shape.rows} * kPanel + 2 * kPanel * kPanel +
         std::int64_t{kPanel} * kTileColumns;
}

Work work_at(float* scratch, const Shape& shape) {
  Work work{};
  const auto take = [&](std::int64_t count) { return std::exchange(scratch, scratch + count); };
  work.x = take(std::int64_t{shape.stride} * shape.n);
  work.v_columns = take(std::int64_t{shape.rows} * kPanel);
  work.v_rows = take(std::int64_t{shape.rows} * kPanel);
  work.t = take(kPanel * kPanel);
  work.gram = take(kPanel * kPanel);
  work.w = take(std::int64_t{kPanel} * kTileColumns);
  work.v = take(shape.rows);
  work.scale = take(shape.n);
  return work;
}

template <int kCount>
float sum_lanes(kbeam::Vector<float, kCount> x) {
  if constexpr (kCount == 1) {
    return x[0];
  } else {
    kbeam::Vector<float, kCount / 2> low, high;
    std::memcpy(&low, &x, sizeof low);
    std::memcpy(&high, reinterpret_cast<const char*>(&x) + sizeof low, sizeof high);
    return sum_lanes<kCount / 2>(low + high);
  }
}

// --- the plain path: sums in double precision; right for every input, fast for none ---

double dot_below(const float* v, const float* x, int above, int m) {
  double sum = 0;
  for (int i = above + 1; i < m; ++i) sum += static_cast<double>(v[i]) * x[i];
  return sum;
}

// Turns column j into its reflector in double precision. Returns tau.
float make_reflector_plain(float* v, int j, int m) {
  const double tail = dot_below(v, v, j, m), alpha = v[j];
  if (tail == 0) return 0;  // H = I, and the diagonal keeps its sign
  const double beta = -std::copysign(std::sqrt(tail + alpha * alpha), alpha);
  for (int i = j + 1; i < m; ++i) v[i] = static_cast<float>(v[i] / (alpha - beta));
  v[j] = static_cast<float>(beta);
  // From the rounded v, so that I - tau v v' is orthogonal whatever the rounding did.
  return static_cast<float>(2 / (1 + dot_below(v, v, j, m)));
}

void factor_plain(const float* a, float* h, float* tau, const Shape& shape) {
  const int m = shape.m;
  std::copy_n(a, std::int64_t{m} * shape.n, h);
  for (int j = 0; j < shape.k; ++j) {
    float* v = h + std::int64_t{j} * m;
    tau[j] = make_reflector_plain(v, j, m);
    for (int c = j + 1; c < shape.n; ++c) {
      float* x = h + std::int64_t{c} * m;
      const double w = tau[j] * (x[j] + dot_below(v, x, j, m));
      x[j] = static_cast<float>(x[j] - w);
      for (int i = j + 1; i < m; ++i) x[i] = static_cast<float>(x[i] - w * v[i]);
    }
  }
}

// --- one reflector ---

// First row of the vector that holds row j.
int vector_of(int j) {
  return j / kWidth * kWidth;
}

float sum_of_squares(const float* x, int from, int rows) {
  const int whole = vector_of(from + kWidth - 1);
  float head = 0;
  for (int i = from; i < whole; ++i) head += x[i] * x[i];
  Row sum[4] = {};
  int i = whole;
  for (; i + 4 * kWidth <= rows; i += 4 * kWidth)
#pragma GCC unroll 4
    for (int u = 0; u < 4; ++u) sum[u] += get(x + i + u * kWidth) * get(x + i + u * kWidth);
  for (; i < rows; i += kWidth) sum[0] += get(x + i) * get(x + i);
  return head + sum_lanes<kWidth>((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

// Turns column j at x into its reflector; v receives it with its 1 and with zeros above. Returns
// tau.
float make_reflector(float* x, float* v, int j, const Shape& shape) {
  const int next = std::min(vector_of(j) + kWidth, shape.rows);
  const float alpha = x[j], tail = sum_of_squares(x, j + 1, shape.rows);
  float tau;
  if (tail > kTailLow && tail + alpha * alpha < kTailHigh) {
    const float beta = -std::copysign(std::sqrt(tail + alpha * alpha), alpha);
    const float scale = 1 / (alpha - beta);
    tau = (beta - alpha) / beta;
    x[j] = beta;
    for (int i = j + 1; i < next; ++i) x[i] *= scale;
    for (int i = next; i < shape.rows; i += kWidth) store(x + i, get(x + i) * scale);
  } else {
    tau = make_reflector_plain(x, j, shape.m);
  }
  std::copy_n(x + j, shape.rows - j, v + j);
  std::fill(v + vector_of(j), v + j, 0.0f);
  v[j] = 1;
  return tau;
}

// Applies I - tau v v' to kCount neighbouring columns.
template <int kCount>
void apply_one(const float* v, float tau, float* x, int j, const Shape& shape) {
  Row dot[kCount] = {};
  for (int i = vector_of(j); i < shape.rows; i += kWidth) {
    const Row vi = get(v + i);
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) dot[c] += vi * get(x + c * shape.stride + i);
  }
  float w[kCount];
#pragma GCC unroll 8
  for (int c = 0; c < kCount; ++c) w[c] = tau * sum_lanes<kWidth>(dot[c]);
  for (int i = vector_of(j); i < shape.rows; i += kWidth) {
    const Row vi = get(v + i);
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c)
      store(x + c * shape.stride + i, get(x + c * shape.stride + i) - w[c] * vi);
  }
}

// Factors columns [from, to) one reflector at a time.
void factor_unblocked(const Work& work, float* tau, int from, int to, const Shape& shape) {
  const auto column = [&](int c) { return work.x + std::int64_t{c} * shape.stride; };
  for (int j = from; j < to; ++j) {
    tau[j] = make_reflector(column(j), work.v, j, shape);
    if (tau[j] == 0) continue;
    int c = j + 1;
    for (; c + kColumns <= to; c += kColumns)
      apply_one<kColumns>(work.v, tau[j], column(c), j, shape);
    for (; c < to; ++c) apply_one<1>(work.v, tau[j], column(c), j, shape);
  }
}

// --- one block of reflectors ---

// W += V'A over `rows` rows: the reflectors are in lanes, so there is no horizontal sum.
template <int kCount>
[[gnu::always_inline]] inline void dots_tile(const float* v_rows, const float* x, int stride,
                                             int rows, float* w) {
  constexpr int kVectors = kPanel / kWidth;
  Row sum[kVectors][kCount] = {};
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < kVectors; ++r) {
      const Row v = get(v_rows + i * kPanel + r * kWidth);
#pragma GCC unroll 8
      for (int c = 0; c < kCount; ++c) sum[r][c] += x[c * stride + i] * v;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kVectors; ++r)
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c) {
      float* total = w + c * kPanel + r * kWidth;
      store(total, get(total) + sum[r][c]);
    }
}

// W = V'A. Rows are summed in chunks, which bounds the rounding error; V'V must be summed in the
// same chunks, because what is common to both errors cancels in T'W.
template <int kCount>
void block_dots(const float* v_rows, const float* x, int stride, int rows, float* w) {
  constexpr int kChunk = 64;
  std::fill_n(w, kCount * kPanel, 0.0f);
  for (int i = 0; i < rows; i += kChunk)
    dots_tile<kCount>(v_rows + i * kPanel, x + i, stride, std::min(kChunk, rows - i), w);
}

// W <- T'W, one column.
void multiply_by_t(const float* t, float* w, int width) {
  constexpr int kVectors = kPanel / kWidth;
  Row sum[kVectors] = {};
  for (int k = 0; k < width; ++k)
#pragma GCC unroll 8
    for (int r = 0; r < kVectors; ++r) sum[r] += w[k] * get(t + k * kPanel + r * kWidth);
#pragma GCC unroll 8
  for (int r = 0; r < kVectors; ++r) store(w + r * kWidth, sum[r]);
}

// A -= V W on kHeight vectors of rows by kCount columns.
template <int kHeight, int kCount>
[[gnu::always_inline]] inline void update_tile(const float* v_columns, int rows, float* x,
                                               int stride, const float* w, int width) {
  Row tile[kHeight][kCount];
#pragma GCC unroll 8
  for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 4
    for (int i = 0; i < kHeight; ++i) tile[i][c] = get(x + c * stride + i * kWidth);
  for (int r = 0; r < width; ++r) {
    Row v[kHeight];
#pragma GCC unroll 4
    for (int i = 0; i < kHeight; ++i) v[i] = get(v_columns + r * rows + i * kWidth);
#pragma GCC unroll 8
    for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 4
      for (int i = 0; i < kHeight; ++i) tile[i][c] -= w[c * kPanel + r] * v[i];
  }
#pragma GCC unroll 8
  for (int c = 0; c < kCount; ++c)
#pragma GCC unroll 4
    for (int i = 0; i < kHeight; ++i) store(x + c * stride + i * kWidth, tile[i][c]);
}

// Applies the packed block of `width` reflectors, whose rows start at `first`, to kCount columns at
// x.
template <int kCount>
void apply_block(const Work& work, float* x, int first, int width, const Shape& shape) {
  const int rows = shape.rows - first;
  block_dots<kCount>(work.v_rows, x + first, shape.stride, rows, work.w);
  for (int c = 0; c < kCount; ++c) multiply_by_t(work.t, work.w + c * kPanel, width);
  int i = 0;
  for (; i + kTileVectors * kWidth <= rows; i += kTileVectors * kWidth)
    update_tile<kTileVectors, kCount>(work.v_columns + i, rows, x + first + i, shape.stride, work.w,
                                      width);
  for (; i < rows; i += kWidth)
    update_tile<1, kCount>(work.v_columns + i, rows, x + first + i, shape.stride, work.w, width);
}

void apply_block_to(const Work& work, int block, int width, int from, int to, const Shape& shape) {
  const int first = vector_of(block);
  int c = from;
  for (; c + kTileColumns <= to; c += kTileColumns)
    apply_block<kTileColumns>(work, work.x + std::int64_t{c} * shape.stride, first, width, shape);
  for (; c < to; ++c)
    apply_block<1>(work, work.x + std::int64_t{c} * shape.stride, first, width, shape);
}

// Copies the reflectors of columns [from, from + width) out, by columns and by rows, unit diagonal
// and zeros included.
void pack_block(const Work& work, int from, int width, const Shape& shape) {
  const int first = vector_of(from), rows = shape.rows - first;
  for (int r = 0; r < width; ++r) {
    const float* x = work.x + std::int64_t{from + r} * shape.stride + first;
    float* v = work.v_columns + std::int64_t{r} * rows;
    const int head = from + r - first;
    std::fill_n(v, head, 0.0f);
    v[head] = 1;
    std::copy(x + head + 1, x + rows, v + head + 1);
  }
  for (int i = 0; i < rows; i += kWidth)
    for (int r = 0; r < kPanel; ++r)
      for (int u = 0; u < kWidth; ++u)
        work.v_rows[(i + u) * kPanel + r] =
            r < width ? work.v_columns[std::int64_t{r} * rows + i + u] : 0;
}

// T of the packed block: T_ll = tau_l and T_kl = -tau_l sum over s in [k, l) of T_ks (v_s'v_l). tau
// = 0 gives a zero column.
void make_t(const Work& work, const float* tau, int from, int width, const Shape& shape) {
  const int rows = shape.rows - vector_of(from);
  for (int l = 0; l < width; ++l)
    block_dots<1>(work.v_rows, work.v_columns + std::int64_t{l} * rows, 0, rows,
                  work.gram + l * kPanel);
  std::fill_n(work.t, kPanel * kPanel, 0.0f);
  for (int l = 0; l < width; ++l) {
    work.t[l * kPanel + l] = tau[from + l];
    for (int k = 0; k < l; ++k) {
      float sum = 0;
      for (int s = k; s < l; ++s) sum += work.t[k * kPanel + s] * work.gram[l * kPanel + s];
      work.t[k * kPanel + l] = -tau[from + l] * sum;
    }
  }
}

void factor_matrix(const Work& work, float* tau, const Shape& shape) {
  for (int j = 0; j < shape.k; j += kPanel) {
    const int width = std::min(kPanel, shape.k - j);
    factor_unblocked(work, tau, j, j + width, shape);
    if (j + width == shape.n) break;
    pack_block(work, j, width, shape);
    make_t(work, tau, j, width, shape);
    apply_block_to(work, j, width, j + width, shape.n, shape);
  }
}

// Copies one matrix in. Columns whose norm is out of range are multiplied by a power of two, which
// is exact.
void copy_in(const Work& work, const float* a, const Shape& shape) {
  for (int c = 0; c < shape.n; ++c) {
    float* x = work.x + std::int64_t{c} * shape.stride;
    std::copy_n(a + std::int64_t{c} * shape.m, shape.m, x);
    std::fill(x + shape.m, x + shape.rows, 0.0f);
    work.scale[c] = 1;
    const float square = sum_of_squares(x, 0, shape.rows);
    if (square > kColumnLow && square < kColumnHigh) continue;
    float most = 0;
    for (int i = 0; i < shape.m; ++i) most = std::max(most, std::fabs(x[i]));
    if (most == 0 || !std::isfinite(most)) continue;
    work.scale[c] = std::ldexp(1.0f, std::min(126, -std::ilogb(most)));
    for (int i = 0; i < shape.m; ++i) x[i] *= work.scale[c];
  }
}

void copy_out(const Work& work, float* h, const Shape& shape) {
  for (int c = 0; c < shape.n; ++c) {
    float* x = work.x + std::int64_t{c} * shape.stride;
    if (work.scale[c] != 1)
      for (int i = 0; i < std::min(c + 1, shape.m); ++i) x[i] /= work.scale[c];
    std::copy_n(x, shape.m, h + std::int64_t{c} * shape.m);
  }
}

void factor(kbeam::Range range, const float* a, float* h, float* tau, float* scratch, Shape shape) {
  const std::int64_t elements = std::int64_t{shape.m} * shape.n;
  const Work work = work_at(scratch, shape);
  for (std::int64_t b = range.begin; b < range.end; ++b) {
    if (std::max(shape.m, shape.n) <= kTiny) {
      factor_plain(a + b * elements, h + b * elements, tau + b * shape.k, shape);
      continue;
    }
    copy_in(work, a + b * elements, shape);
    if (kPrefetch == 1 && b + 1 < range.end)
      for (std::int64_t e = 0; e < elements; e += 16)
        __builtin_prefetch(a + (b + 1) * elements + e, 0, 2);
    factor_matrix(work, tau + b * shape.k, shape);
    copy_out(work, h + b * elements, shape);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  Shape shape{};
  shape.m = static_cast<int>(a.dim(1));
  shape.n = static_cast<int>(a.dim(2));
  shape.k = std::min(shape.m, shape.n);
  shape.rows = (shape.m + kWidth - 1) / kWidth * kWidth;
  shape.stride = shape.rows + kPad * kWidth;
  const auto scratch = plan.worker_scratch<float>(work_floats(shape));
  plan.parallel_for(a.dim(0), 0, factor, a, h, tau, scratch, shape);
}
