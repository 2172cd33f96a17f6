// Unblocked Householder in FP64, rounded once at the end: the most accurate answer that FP32 can
// hold. Slow, and right for every shape and every float.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;

struct Shape {
  int m, n, k;
};

// NaN above everything: fmax would drop it.
__device__ double larger(double a, double b) {
  return a != a ? a : b > a || b != b ? b : a;
}

// Every lane gets the sum.
__device__ double warp_sum(double x) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

__device__ double warp_largest(double x) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x = larger(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}

// Every thread gets the result of all warps.
template <typename Join>
__device__ double over_warps(double x, const Join& join) {
  __shared__ double shared[kWarps];
  __syncthreads();  // the result before has been read
  if (threadIdx.x % kWarp == 0) shared[threadIdx.x / kWarp] = x;
  __syncthreads();  // all warps have given theirs
  x = shared[0];
  for (int warp = 1; warp < kWarps; ++warp) x = join(x, shared[warp]);
  return x;
}

// Reflector `i` of every matrix: v below the diagonal, R's diagonal on it. A block of threads a
// matrix. The column is scaled by a power of two, which is exact, so that no square leaves the
// range.
__global__ void make_reflectors(double* x, double* tau, int i, Shape shape) {
  double* const column = x + (static_cast<std::int64_t>(blockIdx.x) * shape.n + i) * shape.m;
  double* const scale = tau + static_cast<std::int64_t>(blockIdx.x) * shape.k + i;
  double largest = 0;
  for (int row = i + 1 + threadIdx.x; row < shape.m; row += kThreads)
    largest = larger(largest, fabs(column[row]));
  largest = over_warps(warp_largest(largest), [](double a, double b) { return larger(a, b); });
  const double first = column[i];
  if (largest == 0 && first == first) {
    if (threadIdx.x == 0) *scale = 0;
    return;
  }
  largest = larger(largest, fabs(first));
  const int exponent = largest - largest == 0 ? ilogb(largest) : 0;
  double squares = 0;
  for (int row = i + threadIdx.x; row < shape.m; row += kThreads) {
    const double y = scalbn(column[row], -exponent);
    squares += y * y;
  }
  squares = over_warps(warp_sum(squares), [](double a, double b) { return a + b; });
  const double alpha = scalbn(first, -exponent);
  const double beta = -copysign(sqrt(squares), alpha);
  for (int row = i + 1 + threadIdx.x; row < shape.m; row += kThreads)
    column[row] = scalbn(column[row], -exponent) / (alpha - beta);
  if (threadIdx.x == 0) {
    column[i] = scalbn(beta, exponent);
    *scale = (beta - alpha) / beta;
  }
}

// Applies reflector `i` to the columns behind it: a warp a column.
__global__ void apply_reflectors(double* x, const double* tau, int i, Shape shape) {
  const int blocks = (shape.n - i - 1 + kWarps - 1) / kWarps;
  const std::int64_t matrix = blockIdx.x / blocks;
  const int j = i + 1 + static_cast<int>(blockIdx.x % blocks) * kWarps + threadIdx.x / kWarp;
  const double scale = tau[matrix * shape.k + i];
  if (j >= shape.n || scale == 0) return;
  const double* const v = x + (matrix * shape.n + i) * shape.m;
  double* const c = x + (matrix * shape.n + j) * shape.m;
  double dot = 0;
  for (int row = i + threadIdx.x % kWarp; row < shape.m; row += kWarp)
    dot += (row == i ? 1 : v[row]) * c[row];
  const double weight = scale * warp_sum(dot);
  for (int row = i + threadIdx.x % kWarp; row < shape.m; row += kWarp)
    c[row] -= (row == i ? 1 : v[row]) * weight;
}

template <typename From, typename To>
__global__ void convert(const From* from, To* to, std::int64_t count) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  for (std::int64_t e = first; e < count; e += static_cast<std::int64_t>(gridDim.x) * kThreads)
    to[e] = static_cast<To>(from[e]);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  const std::int64_t batch = a.dim(0);
  const Shape shape{static_cast<int>(a.dim(1)), static_cast<int>(a.dim(2)),
                    static_cast<int>(tau.dim(1))};
  const std::int64_t entries = batch * shape.m * shape.n;
  const auto grid_for = [](std::int64_t count) {
    const std::int64_t blocks = (count + kThreads - 1) / kThreads;
    return blocks < 4096 ? blocks : 4096;
  };
  auto x = plan.scratch<double>(entries);
  auto scales = plan.scratch<double>(batch * shape.k);
  plan.launch(convert<float, double>, {.grid = grid_for(entries), .block = kThreads}, a, x,
              entries);
  for (int i = 0; i < shape.k; ++i) {
    plan.launch(make_reflectors, {.grid = batch, .block = kThreads}, x, scales, i, shape);
    if (i + 1 == shape.n) break;
    const std::int64_t blocks = (shape.n - i - 1 + kWarps - 1) / kWarps;
    plan.launch(apply_reflectors, {.grid = batch * blocks, .block = kThreads}, x, scales, i, shape);
  }
  plan.launch(convert<double, float>, {.grid = grid_for(entries), .block = kThreads}, x, h,
              entries);
  plan.launch(convert<double, float>, {.grid = grid_for(batch * shape.k), .block = kThreads},
              scales, tau, batch * shape.k);
}
