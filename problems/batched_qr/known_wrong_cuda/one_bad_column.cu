// expect: wrong_value
// Right but for the middle column of the last matrix, which is off by a thousandth.
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
__device__ float larger(float a, float b) {
  return a != a ? a : b > a || b != b ? b : a;
}

// Every lane gets the sum.
__device__ float warp_sum(float x) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

__device__ float warp_largest(float x) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x = larger(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}

// Every thread gets the result of all warps.
template <typename Join>
__device__ float over_warps(float x, const Join& join) {
  __shared__ float shared[kWarps];
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
__global__ void make_reflectors(float* x, float* tau, int i, Shape shape) {
  float* const column = x + (static_cast<std::int64_t>(blockIdx.x) * shape.n + i) * shape.m;
  float* const scale = tau + static_cast<std::int64_t>(blockIdx.x) * shape.k + i;
  float largest = 0;
  for (int row = i + 1 + threadIdx.x; row < shape.m; row += kThreads)
    largest = larger(largest, fabsf(column[row]));
  largest = over_warps(warp_largest(largest), [](float a, float b) { return larger(a, b); });
  const float first = column[i];
  if (largest == 0 && first == first) {
    if (threadIdx.x == 0) *scale = 0;
    return;
  }
  largest = larger(largest, fabsf(first));
  const int exponent = largest - largest == 0 ? ilogb(largest) : 0;
  float squares = 0;
  for (int row = i + threadIdx.x; row < shape.m; row += kThreads) {
    const float y = scalbnf(column[row], -exponent);
    squares += y * y;
  }
  squares = over_warps(warp_sum(squares), [](float a, float b) { return a + b; });
  const float alpha = scalbnf(first, -exponent);
  const float beta = -copysignf(sqrtf(squares), alpha);
  for (int row = i + 1 + threadIdx.x; row < shape.m; row += kThreads)
    column[row] = scalbnf(column[row], -exponent) / (alpha - beta);
  if (threadIdx.x == 0) {
    column[i] = scalbnf(beta, exponent);
    *scale = (beta - alpha) / beta;
  }
}

// Applies reflector `i` to the columns behind it: a warp a column.
__global__ void apply_reflectors(float* x, const float* tau, int i, Shape shape) {
  const int blocks = (shape.n - i - 1 + kWarps - 1) / kWarps;
  const std::int64_t matrix = blockIdx.x / blocks;
  const int j = i + 1 + static_cast<int>(blockIdx.x % blocks) * kWarps + threadIdx.x / kWarp;
  const float scale = tau[matrix * shape.k + i];
  if (j >= shape.n || scale == 0) return;
  const float* const v = x + (matrix * shape.n + i) * shape.m;
  float* const c = x + (matrix * shape.n + j) * shape.m;
  float dot = 0;
  for (int row = i + threadIdx.x % kWarp; row < shape.m; row += kWarp)
    dot += (row == i ? 1 : v[row]) * c[row];
  const float weight = scale * warp_sum(dot);
  for (int row = i + threadIdx.x % kWarp; row < shape.m; row += kWarp)
    c[row] -= (row == i ? 1 : v[row]) * weight;
}

__global__ void spoil(float* h, std::int64_t matrix, Shape shape) {
  float* const column = h + (matrix * shape.n + shape.n / 2) * shape.m;
  const int length = shape.n / 2 < shape.k ? shape.n / 2 + 1 : shape.k;
  for (int row = threadIdx.x; row < length; row += kThreads) column[row] *= 1.001f;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  const std::int64_t batch = a.dim(0);
  const Shape shape{static_cast<int>(a.dim(1)), static_cast<int>(a.dim(2)),
                    static_cast<int>(tau.dim(1))};
  plan.copy(h, a, batch * shape.m * shape.n);
  for (int i = 0; i < shape.k; ++i) {
    plan.launch(make_reflectors, {.grid = batch, .block = kThreads}, h, tau, i, shape);
    if (i + 1 == shape.n) break;
    const std::int64_t blocks = (shape.n - i - 1 + kWarps - 1) / kWarps;
    plan.launch(apply_reflectors, {.grid = batch * blocks, .block = kThreads}, h, tau, i, shape);
  }
  plan.launch(spoil, {.grid = 1, .block = kThreads}, h, batch - 1, shape);
}
