// Judges (H, tau) against A on the GPU, in FP64, by the rules, names and units of judge.h. Two
// depths: every column, or a secret projection that sends whatever looks odd to the first, inside
// the same plan.
#pragma once

#include <kbeam/problem_cuda.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <string>

#include "block_reflectors.cuh"
#include "draws.cuh"
#include "reductions.cuh"

namespace batched_qr {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / kWarp;
inline constexpr int kMostRows = 8192;

// What is known of a matrix; bits.
enum State : int { kInputOdd = 1, kOutputOdd = 2, kLarge = 4, kSuspicious = 8 };
// What is known of a column; bits.
enum Mark : int { kColumnOfAOdd = 1, kColumnOfHOdd = 2, kColumnOfHNonzero = 4, kTailOfAZero = 8 };

// The limits of one grade and shape, as judge.h has them; by value to the kernels.
struct Limits {
  std::int64_t fp32;     // 1, or 0 for `contest`; no bool, for padding would make two plans differ
  double k;              // max(m, n)
  double residual;       // eps, or n eps
  double orthogonality;  // n eps
  double floor;          // how far rounding may move a column: 4 k of the smallest positive float

  static constexpr double kEps = FLT_EPSILON;
  __host__ __device__ double column_limit(double norm) const {
    return residual + floor / (kEps * norm);
  }
  __host__ __device__ double defect() const { return 0.5 * orthogonality * k; }
};

inline Limits make_limits(const std::string& grade, std::int64_t m, std::int64_t n) {
  const auto k = static_cast<double>(std::max(m, n));
  const bool fp32 = grade != "contest";
  return {fp32 ? 1 : 0, k, fp32 ? std::min(10 * std::sqrt(k), 400.0) : 20.0,
          fp32 ? 2 * std::max(k, 16.0) / k : 100.0, 4 * k * 0x1p-149};
}

static __device__ __forceinline__ bool is_finite(double x) {
  return x - x == 0;
}

// How columns are added up for the quick look: as projection.h does.
struct Grouping {
  int width;
  int groups;
};
inline Grouping make_grouping(std::int64_t n) {
  const int width = static_cast<int>(n <= 512 ? tiles_of(n, 8) : 32);
  return {width, static_cast<int>(tiles_of(n, width))};
}

// ---- what can be seen column by column ----

// A warp a column. One-norms are kept as the bits of doubles, which order as they do.
static __global__ void __launch_bounds__(kThreads)
    measure_columns(const float* a, const float* h, const float* tau, double* norms,
                    double* defects, int* marks, int* states, unsigned long long* one_norms,
                    Group group) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (at >= group.count * group.n) return;
  const int lane = threadIdx.x % kWarp;
  const std::int64_t matrix = at / group.n;
  const int j = static_cast<int>(at % group.n);
  double squares = 0, sum = 0, tail_of_a = 0, upper = 0, lower = 0;
  for (int row = lane; row < group.m; row += kWarp) {
    const double x = a[at * group.m + row];
    const double y = h[at * group.m + row];
    squares += x * x;
    sum += fabs(x);
    if (row > j) tail_of_a += x * x;
    (row > j ? lower : upper) += y * y;
  }
  squares = warp_sum(squares);
  sum = warp_sum(sum);
  tail_of_a = warp_sum(tail_of_a);
  upper = warp_sum(upper);
  lower = warp_sum(lower);
  if (lane != 0) return;
  const double scale = j < group.k ? tau[matrix * group.k + j] : 0;
  int mark = 0, state = 0;
  if (!is_finite(squares)) mark |= kColumnOfAOdd, state |= kInputOdd;
  if (!is_finite(upper + lower + scale)) mark |= kColumnOfHOdd, state |= kOutputOdd;
  if (upper + lower != 0) mark |= kColumnOfHNonzero;
  if (tail_of_a == 0) mark |= kTailOfAZero;
  const double norm = sqrt(squares);
  if (norm > static_cast<double>(FLT_MAX) / 4) state |= kLarge;
  norms[at] = norm;
  marks[at] = mark;
  // H'H - I = tau (tau v'v - 2) v v', whose largest column sum is at most this. No entry of v
  // exceeds the 1 on the diagonal, or what is left of v'v without it.
  double defect = 0;
  if (scale != 0)
    defect = fabs(scale * (scale * (1 + lower) - 2)) *
             sqrt(static_cast<double>(group.m - j) * (1 + lower) * fmax(1.0, lower));
  defects[at] = defect / Limits::kEps;
  if (state != 0) atomicOr(states + matrix, state);
  atomicMax(one_norms + matrix, static_cast<unsigned long long>(__double_as_longlong(sum)));
}

// A thread a column: signs, tau and zero columns as LAPACK has them, and who may be non-finite.
// tau = 1 + |alpha| / norm lies in [1, 2] exactly when R's diagonal has the sign opposite to alpha.
// Columns whose tau must be 0 if they still are zero below the diagonal in their turn go on a list.
static __global__ void __launch_bounds__(kThreads)
    judge_conventions(const float* tau, const double* norms, const int* marks, const int* states,
                      int* tails, int* tail_count, kbeam::FigureCell* missing,
                      kbeam::FigureCell* not_finite, kbeam::FigureCell* tau_range,
                      kbeam::FigureCell* zero_columns, Group group, Limits limits) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= group.count * group.n) return;
  const std::int64_t matrix = at / group.n;
  const int j = static_cast<int>(at % group.n);
  const int state = states[matrix], mark = marks[at];
  const auto place = static_cast<std::uint64_t>(group.first * group.n + at);
  if (state & kInputOdd) {
    if (!(state & kOutputOdd) && (mark & kColumnOfAOdd)) kbeam::raise_figure(missing, 1, place);
    return;
  }
  if (state & kOutputOdd) {
    // Above this norm a correct factorisation may overflow on the way.
    if (!(state & kLarge) && (mark & kColumnOfHOdd)) kbeam::raise_figure(not_finite, 1, place);
    return;
  }
  if (!limits.fp32) return;
  if (norms[at] == 0 && (mark & kColumnOfHNonzero)) kbeam::raise_figure(zero_columns, 1, place);
  if (j >= group.k) return;
  const double scale = tau[matrix * group.k + j];
  if (scale == 0) return;
  const double outside = fmax(1 - scale, scale - 2);
  if (outside > 0)
    kbeam::raise_figure(tau_range, outside,
                        static_cast<std::uint64_t>((group.first + matrix) * group.k + j));
  if (mark & kTailOfAZero) tails[atomicAdd(tail_count, 1)] = static_cast<int>(matrix * group.k + j);
}

// Is column i exactly zero below the diagonal when its turn comes? Only asked where A itself is
// zero there: elsewhere the answer depends on rounding, and any answer is right. One reflector
// after the other, as judge.h does it; a block of threads a listed column, rows in registers.
static __global__ void __launch_bounds__(kThreads)
    judge_zero_tails(const float* a, const float* h, const float* tau, const int* tails,
                     const int* tail_count, kbeam::FigureCell* zero_tails, Group group) {
  __shared__ double sums[kWarps];
  constexpr int kMostParts = kMostRows / kThreads;
  const int parts = (group.m + kThreads - 1) / kThreads;
  const int listed = *tail_count;
  for (int which = blockIdx.x; which < listed; which += gridDim.x) {
    const std::int64_t matrix = tails[which] / group.k;
    const int i = tails[which] % group.k;
    const float* const column = a + (matrix * group.n + i) * group.m;
    double x[kMostParts];
#pragma unroll
    for (int part = 0; part < kMostParts; ++part) {
      const int row = part * kThreads + threadIdx.x;
      x[part] = row <= i ? column[row] : 0;
    }
    for (int l = 0; l < i; ++l) {
      const double scale = tau[matrix * group.k + l];
      if (scale == 0) continue;
      const float* const v = h + (matrix * group.n + l) * group.m;
      double dot = 0;
#pragma unroll
      for (int part = 0; part < kMostParts; ++part) {
        const int row = part * kThreads + threadIdx.x;
        if (part < parts && row >= l && row < group.m)
          dot += (row == l ? 1.0 : static_cast<double>(v[row])) * x[part];
      }
      const double weight = scale * block_sum(dot, sums);
      if (weight == 0) continue;
#pragma unroll
      for (int part = 0; part < kMostParts; ++part) {
        const int row = part * kThreads + threadIdx.x;
        if (part < parts && row >= l && row < group.m)
          x[part] -= (row == l ? 1.0 : static_cast<double>(v[row])) * weight;
      }
    }
    double nonzeros = 0;
#pragma unroll
    for (int part = 0; part < kMostParts; ++part)
      if (part * kThreads + static_cast<int>(threadIdx.x) > i && x[part] != 0) nonzeros += 1;
    nonzeros = block_sum(nonzeros, sums);
    if (nonzeros == 0 && threadIdx.x == 0)
      kbeam::raise_figure(zero_tails, tau[matrix * group.k + i],
                          static_cast<std::uint64_t>((group.first + matrix) * group.k + i));
  }
}

// ---- every column, in full ----

inline constexpr int kSpread = 1024;  // entries of X a block of threads writes

// X = [A I] in FP64.
static __global__ void __launch_bounds__(kThreads)
    spread_inputs(const float* a, const int* states, double* x, Group group) {
  const std::int64_t entries = static_cast<std::int64_t>(group.m) * group.columns;
  const std::int64_t blocks = (entries + kSpread - 1) / kSpread;
  const std::int64_t matrix = blockIdx.x / blocks;
  if (!group.takes(states[matrix])) return;
  const std::int64_t first = blockIdx.x % blocks * kSpread;
  const std::int64_t end = first + kSpread < entries ? first + kSpread : entries;
  const std::int64_t inputs = static_cast<std::int64_t>(group.m) * group.n;
  for (std::int64_t e = first + threadIdx.x; e < end; e += kThreads)
    x[matrix * entries + e] = e < inputs                          ? a[matrix * inputs + e]
                              : (e - inputs) % (group.m + 1) == 0 ? 1.0
                                                                  : 0.0;
}

// A warp a column of Q'A, which X holds: against R.
static __global__ void __launch_bounds__(kThreads)
    judge_residual(const float* h, const double* x, const double* norms,
                   const unsigned long long* one_norms, const int* states,
                   kbeam::FigureCell* residual, Group group, Limits limits) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (at >= group.count * group.n) return;
  const std::int64_t matrix = at / group.n;
  if (!group.takes(states[matrix])) return;
  const int lane = threadIdx.x % kWarp, j = static_cast<int>(at % group.n);
  const double* const y = x + (matrix * group.columns + j) * group.m;
  const float* const r = h + at * group.m;
  const int length = j + 1 < group.k ? j + 1 : group.k;  // of the column of R
  double squares = 0, sum = 0;
  for (int row = lane; row < group.m; row += kWarp) {
    const double difference = y[row] - (row < length ? static_cast<double>(r[row]) : 0.0);
    squares += difference * difference;
    sum += fabs(difference);
  }
  squares = warp_sum(squares);
  sum = warp_sum(sum);
  if (lane != 0) return;
  const auto place = static_cast<std::uint64_t>(group.first * group.n + at);
  // Figures have one limit each, so values are measured by the column's own limit.
  if (limits.fp32) {
    const double norm = norms[at];
    if (norm > 0)
      kbeam::raise_figure(
          residual,
          sqrt(squares) / (Limits::kEps * norm) / (limits.column_limit(norm) / limits.residual),
          place);
    return;
  }
  const double unit =
      limits.k * Limits::kEps * __longlong_as_double(static_cast<long long>(one_norms[matrix]));
  if (unit > 0)
    kbeam::raise_figure(residual, sum / unit / (1 + limits.floor / (unit * limits.residual)),
                        place);
  else
    kbeam::raise_figure(residual, limits.residual * sum / limits.floor, place);
}

// A warp a column of Q'Q, which X holds behind Q'A.
static __global__ void __launch_bounds__(kThreads)
    judge_orthogonality(const double* x, const int* states, kbeam::FigureCell* orthogonality,
                        Group group, Limits limits) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (at >= group.count * group.m) return;
  const std::int64_t matrix = at / group.m;
  if (!group.takes(states[matrix])) return;
  const int lane = threadIdx.x % kWarp, c = static_cast<int>(at % group.m);
  const double* const y = x + (matrix * group.columns + group.n + c) * group.m;
  double sum = 0;
  for (int row = lane; row < group.m; row += kWarp) sum += fabs(y[row] - (row == c ? 1.0 : 0.0));
  sum = warp_sum(sum);
  if (lane == 0)
    kbeam::raise_figure(orthogonality, sum / (limits.k * Limits::kEps),
                        static_cast<std::uint64_t>(group.first * group.m + at));
}

// ---- the quick look ----

// A thread a column: its signed weight in the sums, 0 for a column that stays out. A matrix that
// the projection cannot speak for is suspicious from the start.
static __global__ void __launch_bounds__(kThreads)
    weigh_columns(const double* norms, const double* defects, const int* marks,
                  const unsigned long long* one_norms, int* states, double* weights,
                  const kbeam::Control* control, Group group, Limits limits) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= group.count * group.n) return;
  const std::int64_t matrix = at / group.n;
  const auto j = static_cast<std::uint64_t>(at % group.n);
  const int state = states[matrix] & ~kSuspicious;
  if (state & (kInputOdd | kOutputOdd)) return;
  const bool filled_zero_column = norms[at] == 0 && (marks[at] & kColumnOfHNonzero);
  if ((state & kLarge) || filled_zero_column || !(defects[at] <= limits.defect()))
    atomicOr(states + matrix, static_cast<int>(kSuspicious));
  const Draws draws = draws_of(control->secret, static_cast<std::uint64_t>(group.first + matrix));
  const double one_norm = __longlong_as_double(static_cast<long long>(one_norms[matrix]));
  const double scale = limits.fp32 ? norms[at] : one_norm;
  const double weight = norms[at] == 0 ? 0 : 1 / scale;
  weights[at] = draws.bits(Purpose::sign, j) >> 63 ? weight : -weight;
}

// X = the sums of A's columns, Y = those of R's: a thread a row of one group's sum.
static __global__ void __launch_bounds__(kThreads)
    add_up_columns(const float* a, const float* h, const double* weights, const int* states,
                   double* x, double* y, Group group, Grouping grouping) {
  const int row_blocks = (group.m + kThreads - 1) / kThreads;
  const std::int64_t at = blockIdx.x / row_blocks;  // matrix and group of columns
  const std::int64_t matrix = at / grouping.groups;
  if (!group.takes(states[matrix])) return;
  const int row = static_cast<int>(blockIdx.x % row_blocks) * kThreads + threadIdx.x;
  if (row >= group.m) return;
  const int first = static_cast<int>(at % grouping.groups) * grouping.width;
  const int end = first + grouping.width < group.n ? first + grouping.width : group.n;
  double sum_of_a = 0, sum_of_r = 0;
#pragma unroll 4
  for (int j = first; j < end; ++j) {
    const double weight = weights[matrix * group.n + j];
    const std::int64_t entry = (matrix * group.n + j) * group.m + row;
    sum_of_a += weight * a[entry];
    if (row <= j && row < group.k) sum_of_r += weight * h[entry];
  }
  x[at * group.m + row] = sum_of_a;
  y[at * group.m + row] = sum_of_r;
}

// A warp a sum: its error as a share of what its columns are allowed together. Honest FP32 stays
// below a tenth of it.
static __global__ void __launch_bounds__(kThreads)
    judge_sums(const double* x, const double* y, const double* norms, const double* weights,
               double* shares, int* states, Group group, Grouping grouping, Limits limits) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (at >= group.count * grouping.groups) return;
  const std::int64_t matrix = at / grouping.groups;
  if (!group.takes(states[matrix] & ~kSuspicious)) return;
  const int lane = threadIdx.x % kWarp;
  double squares = 0, allowed = 0;
  for (int row = lane; row < group.m; row += kWarp) {
    const double difference = x[at * group.m + row] - y[at * group.m + row];
    squares += difference * difference;
  }
  const int first = static_cast<int>(at % grouping.groups) * grouping.width;
  for (int c = lane; c < grouping.width && first + c < group.n; c += kWarp) {
    const std::int64_t column = matrix * group.n + first + c;
    if (weights[column] == 0) continue;
    const double limit =
        0.5 * (limits.fp32 ? limits.column_limit(norms[column])
                           : limits.residual * limits.k /
                                 sqrt(static_cast<double>(group.m) * static_cast<double>(group.n)));
    allowed += limit * limit;
  }
  squares = warp_sum(squares);
  allowed = warp_sum(allowed);
  if (lane != 0) return;
  const double share = allowed > 0 ? sqrt(squares / allowed) / Limits::kEps : 0;
  shares[at] = share;
  if (!(share <= 1)) atomicOr(states + matrix, static_cast<int>(kSuspicious));
}

// A thread a column or a sum: the figures of the matrices that passed; the others are counted.
static __global__ void __launch_bounds__(kThreads)
    report_sums(const double* shares, const double* defects, const int* states, int* suspicious,
                kbeam::FigureCell* projected, kbeam::FigureCell* defect, double projected_limit,
                Group group, Grouping grouping) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (at >= group.count * group.n) return;
  const std::int64_t matrix = at / group.n;
  const int j = static_cast<int>(at % group.n), state = states[matrix];
  if (state & (kInputOdd | kOutputOdd)) return;
  if (state & kSuspicious) {
    if (j == 0) atomicOr(suspicious, 1);
    return;
  }
  if (j < grouping.groups) {
    const std::int64_t sum = matrix * grouping.groups + j;
    kbeam::raise_figure(projected, shares[sum] * projected_limit,
                        static_cast<std::uint64_t>(group.first * grouping.groups + sum));
  }
  if (j < group.k)
    kbeam::raise_figure(defect, defects[at],
                        static_cast<std::uint64_t>((group.first + matrix) * group.k + j));
}

static __global__ void ask_for_more(const int* suspicious, cudaGraphConditionalHandle handle) {
  cudaGraphSetConditional(handle, *suspicious != 0 ? 1 : 0);
}

// ---- the plan ----

// A template over the plan, so that the tests can run all of it without a GPU.
template <typename Plan, typename Args>
class CheckPlan {
 public:
  CheckPlan(Plan& plan, const Args& args)
      : plan_(plan),
        args_(args),
        batch_(args.axis("batch")),
        m_(args.axis("m")),
        n_(args.axis("n")),
        k_(std::min(m_, n_)),
        quick_(args.text("depth") == "quick"),
        limits_(make_limits(args.text("grade"), m_, n_)),
        grouping_(make_grouping(n_)) {}

  void describe() {
    if (m_ > kMostRows) return plan_.not_supported("problem.cu judges up to 8192 rows");
    declare_figures();
    take_memory();
    measure();
    if (!quick_) return judge_all(kInputOdd | kOutputOdd, 0);
    look_quickly();
    auto more = plan_.condition();
    plan_.launch(ask_for_more, {.grid = 1, .block = 1}, suspicious_, more);
    plan_.when(more, [this] { judge_all(kInputOdd | kOutputOdd, kSuspicious); });
  }

 private:
  template <typename T>
  using Pointer = decltype(std::declval<Plan&>().template scratch<T>(1));
  template <typename T>
  using Read = Pointer<const T>;

  using Cell = Pointer<kbeam::FigureCell>;

  static constexpr std::int64_t kMostBytes = std::int64_t{4} << 30;

  void declare_figures() {
    const bool fp32 = limits_.fp32;
    const auto of = [this](const char* part, std::int64_t parts) {
      return std::vector<std::pair<std::string, std::int64_t>>{{"matrix", batch_}, {part, parts}};
    };
    if (quick_) {
      projected_limit_ = 0.5 * limits_.residual * std::sqrt(static_cast<double>(grouping_.width));
      projected_ = plan_.figure({.name = "projected_residual",
                                 .unit = "eps",
                                 .limit = projected_limit_,
                                 .where = of("column group", grouping_.groups)});
      defect_ = plan_.figure({.name = "reflector_defect",
                              .unit = "eps",
                              .limit = limits_.defect(),
                              .where = of("reflector", k_)});
    }
    residual_ = plan_.figure({.name = fp32 ? "column_residual" : "normwise_residual",
                              .unit = fp32 ? "eps" : "n eps",
                              .limit = limits_.residual,
                              .where = of("column", n_)});
    orthogonality_ = plan_.figure({.name = "orthogonality",
                                   .unit = "n eps",
                                   .limit = limits_.orthogonality,
                                   .where = of("column of Q", m_)});
    not_finite_ = plan_.figure({.name = "non_finite_output",
                                .unit = "columns",
                                .limit = 0,
                                .where = of("column", n_),
                                .not_finite = true});
    missing_ = plan_.figure({.name = "finite_output_of_non_finite_input",
                             .unit = "columns",
                             .limit = 0,
                             .where = of("column", n_)});
    tau_range_ = plan_.figure({.name = "tau_outside_1_to_2",
                               .unit = "absolute",
                               .limit = limits_.orthogonality * limits_.k * Limits::kEps,
                               .where = of("tau", k_)});
    zero_tails_ = plan_.figure({.name = "tau_where_the_tail_is_zero",
                                .unit = "absolute",
                                .limit = 0,
                                .where = of("tau", k_)});
    zero_columns_ = plan_.figure(
        {.name = "zero_column_not_zero", .unit = "columns", .limit = 0, .where = of("column", n_)});
  }

  void take_memory() {
    a_ = args_.template input<float>("A");
    h_ = args_.template input<float>("H");
    tau_ = args_.template input<float>("tau");
    norms_ = plan_.template scratch<double>(batch_ * n_);
    defects_ = plan_.template scratch<double>(batch_ * n_);
    marks_ = plan_.template scratch<int>(batch_ * n_);
    tails_ = plan_.template scratch<int>(batch_ * k_);
    states_ = plan_.template zeroed_scratch<int>(batch_);
    one_norms_ = plan_.template zeroed_scratch<unsigned long long>(batch_);
    tail_count_ = plan_.template zeroed_scratch<int>(1);
    suspicious_ = plan_.template zeroed_scratch<int>(1);
    const std::int64_t columns = std::max<std::int64_t>(m_ + n_, grouping_.groups);
    const std::int64_t blocks = tiles_of(k_, kBlock);
    const std::int64_t doubles = columns * (m_ + kBlock) + blocks * kBlock * kBlock;
    most_in_group_ = std::clamp<std::int64_t>(
        kMostBytes / (doubles * static_cast<std::int64_t>(sizeof(double))), 1, batch_);
    triangles_ = plan_.template scratch<double>(most_in_group_ * blocks * kBlock * kBlock);
    x_ = plan_.template scratch<double>(most_in_group_ * columns * m_);
    w_ = plan_.template scratch<double>(most_in_group_ * columns * kBlock);
    if (quick_) {
      y_ = plan_.template scratch<double>(most_in_group_ * grouping_.groups * m_);
      weights_ = plan_.template scratch<double>(batch_ * n_);
      shares_ = plan_.template scratch<double>(batch_ * grouping_.groups);
    }
  }

  Group group_of(std::int64_t first, std::int64_t count, int columns, int forbid, int need) const {
    return {first, count, static_cast<int>(m_), static_cast<int>(n_), static_cast<int>(k_), columns,
            need,  forbid};
  }
  Group whole() const { return group_of(0, batch_, 0, 0, 0); }

  template <typename Use>
  void for_each_group(int columns, int forbid, int need, const Use& use) {
    for (std::int64_t first = 0; first < batch_; first += most_in_group_)
      use(group_of(first, std::min(most_in_group_, batch_ - first), columns, forbid, need));
  }

  struct Memory {
    Read<float> h;
    Read<float> tau;
    Read<int> states;
    Pointer<double> triangles;
    Pointer<double> x;
    Pointer<double> w;
  };
  Memory memory_of(const Group& group) const {
    return {h_ + group.first * m_ * n_,
            tau_ + group.first * k_,
            states_ + group.first,
            triangles_,
            x_,
            w_};
  }

  void measure() {
    const Group all = whole();
    plan_.launch(measure_columns, {.grid = tiles_of(batch_ * n_, kWarps), .block = kThreads}, a_,
                 h_, tau_, norms_, defects_, marks_, states_, one_norms_, all);
    plan_.launch(judge_conventions, {.grid = tiles_of(batch_ * n_, kThreads), .block = kThreads},
                 tau_, norms_, marks_, states_, tails_, tail_count_, missing_, not_finite_,
                 tau_range_, zero_columns_, all, limits_);
    if (limits_.fp32)
      plan_.launch(judge_zero_tails,
                   {.grid = std::min<std::int64_t>(batch_ * k_, 1056), .block = kThreads}, a_, h_,
                   tau_, tails_, tail_count_, zero_tails_, all);
  }

  void judge_all(int forbid, int need) {
    for_each_group(static_cast<int>(n_ + m_), forbid, need, [this](const Group& group) {
      const Memory memory = memory_of(group);
      plan_.launch(spread_inputs,
                   {.grid = group.count * tiles_of(m_ * (n_ + m_), kSpread), .block = kThreads},
                   a_ + group.first * m_ * n_, memory.states, x_, group);
      build_all_triangles(plan_, memory, group);
      form_q(plan_, memory, group, static_cast<int>(n_));
      apply_q_transposed<kTileRows>(plan_, memory, group);
      plan_.launch(judge_residual, {.grid = tiles_of(group.count * n_, kWarps), .block = kThreads},
                   memory.h, x_, norms_ + group.first * n_, one_norms_ + group.first, memory.states,
                   residual_, group, limits_);
      plan_.launch(judge_orthogonality,
                   {.grid = tiles_of(group.count * m_, kWarps), .block = kThreads}, x_,
                   memory.states, orthogonality_, group, limits_);
    });
  }

  void look_quickly() {
    const Group all = whole();
    plan_.launch(weigh_columns, {.grid = tiles_of(batch_ * n_, kThreads), .block = kThreads},
                 norms_, defects_, marks_, one_norms_, states_, weights_, plan_.control(args_), all,
                 limits_);
    for_each_group(grouping_.groups, kInputOdd | kOutputOdd, 0, [this](const Group& group) {
      const Memory memory = memory_of(group);
      const std::int64_t sums = group.count * grouping_.groups;
      plan_.launch(add_up_columns, {.grid = sums * tiles_of(m_, kThreads), .block = kThreads},
                   a_ + group.first * m_ * n_, memory.h, weights_ + group.first * n_, memory.states,
                   x_, y_, group, grouping_);
      build_all_triangles(plan_, memory, group);
      if (grouping_.groups <= 8)
        apply_q_transposed<8>(plan_, memory, group);
      else
        apply_q_transposed<kTileRows>(plan_, memory, group);
      plan_.launch(judge_sums, {.grid = tiles_of(sums, kWarps), .block = kThreads}, x_, y_,
                   norms_ + group.first * n_, weights_ + group.first * n_,
                   shares_ + group.first * grouping_.groups, states_ + group.first, group,
                   grouping_, limits_);
    });
    plan_.launch(report_sums, {.grid = tiles_of(batch_ * n_, kThreads), .block = kThreads}, shares_,
                 defects_, states_, suspicious_, projected_, defect_, projected_limit_, all,
                 grouping_);
  }

  Plan& plan_;
  const Args& args_;
  std::int64_t batch_, m_, n_, k_;
  bool quick_;
  Limits limits_;
  Grouping grouping_;
  double projected_limit_ = 0;
  std::int64_t most_in_group_ = 1;
  Read<float> a_, h_, tau_;
  Pointer<double> norms_, defects_, triangles_, x_, w_, y_, weights_, shares_;
  Pointer<int> marks_, tails_, states_, tail_count_, suspicious_;
  Pointer<unsigned long long> one_norms_;
  Cell projected_, defect_, residual_, orthogonality_, not_finite_, missing_, tau_range_,
      zero_tails_, zero_columns_;
};

template <typename Plan, typename Args>
void describe_check(Plan& plan, const Args& args) {
  CheckPlan<Plan, Args>(plan, args).describe();
}

}  // namespace batched_qr
