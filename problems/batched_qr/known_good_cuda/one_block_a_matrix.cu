// Unblocked Householder in FP32, one launch: a block of threads factors a matrix from first to last
// column.
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

// Reflector `i` of one matrix: v below the diagonal, R's diagonal on it; gives its scale. The
// column is scaled by a power of two, which is exact, so that no square leaves the range.
__device__ float make_reflector(float* column, int i, int m) {
  float largest = 0;
  for (int row = i + 1 + threadIdx.x; row < m; row += kThreads)
    largest = larger(largest, fabsf(column[row]));
  largest = over_warps(warp_largest(largest), [](float a, float b) { return larger(a, b); });
  const float first = column[i];
  if (largest == 0 && first == first) return 0;
  largest = larger(largest, fabsf(first));
  const int exponent = largest - largest == 0 ? ilogb(largest) : 0;
  float squares = 0;
  for (int row = i + threadIdx.x; row < m; row += kThreads) {
    const float y = scalbnf(column[row], -exponent);
    squares += y * y;
  }
  squares = over_warps(warp_sum(squares), [](float a, float b) { return a + b; });
  const float alpha = scalbnf(first, -exponent);
  const float beta = -copysignf(sqrtf(squares), alpha);
  __syncthreads();  // all have read the diagonal element
  for (int row = i + 1 + threadIdx.x; row < m; row += kThreads)
    column[row] = scalbnf(column[row], -exponent) / (alpha - beta);
  if (threadIdx.x == 0) column[i] = scalbnf(beta, exponent);
  return (beta - alpha) / beta;
}

__global__ void factor_matrices(const float* a, float* h, float* tau, Shape shape) {
  const std::int64_t entries = static_cast<std::int64_t>(shape.m) * shape.n;
  float* const x = h + blockIdx.x * entries;
  for (std::int64_t e = threadIdx.x; e < entries; e += kThreads) x[e] = a[blockIdx.x * entries + e];
  for (int i = 0; i < shape.k; ++i) {
    __syncthreads();  // the columns are as the reflector before left them
    float* const v = x + static_cast<std::int64_t>(i) * shape.m;
    const float scale = make_reflector(v, i, shape.m);
    if (threadIdx.x == 0) tau[static_cast<std::int64_t>(blockIdx.x) * shape.k + i] = scale;
    if (scale == 0) continue;
    __syncthreads();  // v is complete
    const int lane = threadIdx.x % kWarp;
    for (int j = i + 1 + threadIdx.x / kWarp; j < shape.n; j += kWarps) {
      float* const c = x + static_cast<std::int64_t>(j) * shape.m;
      float dot = 0;
      for (int row = i + lane; row < shape.m; row += kWarp) dot += (row == i ? 1 : v[row]) * c[row];
      const float weight = scale * warp_sum(dot);
      for (int row = i + lane; row < shape.m; row += kWarp)
        c[row] -= (row == i ? 1 : v[row]) * weight;
    }
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  auto a = args.input<float>("A");
  auto h = args.output<float>("H");
  auto tau = args.output<float>("tau");
  const Shape shape{static_cast<int>(a.dim(1)), static_cast<int>(a.dim(2)),
                    static_cast<int>(tau.dim(1))};
  plan.launch(factor_matrices, {.grid = a.dim(0), .block = kThreads}, a, h, tau, shape);
}
