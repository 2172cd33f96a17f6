// Householder QR of matrices up to 32 x 32: a warp a matrix, a lane a column, all in registers. The
// pivot column reaches the other lanes by exchanges, so that no step waits for shared memory, which
// only turns the finished rows into columns.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kWarpMatrices, 4, 1, 2, 4, 8);  // matrices a block, if many
KBEAM_KNOB(int, kSegment, 8, 8, 16, 32);        // steps between two cuts of the live rows

namespace {

// Columns whose largest element lies outside are multiplied by a power of two, which is exact for
// the reflectors and undone in R.
constexpr float kScaleBelow = 0x1p-16f, kScaleAbove = 0x1p16f;
// A sum of squares below this may have lost something to underflow; then the column is scaled
// again and summed anew.
constexpr float kTinySquare = 0x1p-90f;
constexpr int kRowStride = 33;

// --- instructions ---
__device__ __forceinline__ float reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
__device__ __forceinline__ float reciprocal_root(float x) {
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}
// --- end of instructions ---

// The power of two that brings `most` near 1, and its inverse; both are normal numbers.
struct Scale {
  float to, back;
};
__device__ __forceinline__ Scale scale_for(float most) {
  const int bits = static_cast<int>(__float_as_uint(most) >> 23);  // subnormals count as 0
  const int exponent = min(126, max(-126, 127 - bits));
  return {__uint_as_float((127 + exponent) << 23), __uint_as_float((127 - exponent) << 23)};
}
__device__ __forceinline__ bool needs_scale(float most) {
  return most != 0 && (most < kScaleBelow || most > kScaleAbove) && most <= 0x1.fffffep127f;
}

// v = (1, gamma x); H = I - tau v v' takes (alpha, x) to (beta, 0). tau gamma = over_norm.
struct Reflector {
  float beta, tau, gamma, over_norm;
};
__device__ __forceinline__ Reflector make_reflector(float alpha, float square) {
  const float size = fabsf(alpha), sum = fmaf(alpha, alpha, square);
  const float root = reciprocal_root(sum), rough = sum * root;
  const float near = reciprocal(size + rough);  // begun before the norm is exact
  const float slip = fmaf(-rough, root, 1.0f);
  const float norm = fmaf(0.5f * rough, slip, rough), inverse = fmaf(0.5f * root, slip, root);
  const float gamma = fmaf(near, fmaf(-(size + norm), near, 1.0f), near);
  return {-copysignf(norm, alpha), fmaf(size, inverse, 1.0f), copysignf(gamma, alpha),
          copysignf(inverse, alpha)};
}

// Registers move up by one row a step, so that v[0] is the row of the pivot and the steps can be a
// loop. A lane whose column is done keeps its x there, and hands it out row by row.
template <int kRows>
struct Lane {
  float v[kRows], square;  // of the rows below v[0]
  float back, tau, gamma, lift;
  float* rows;  // finished rows of H, kRowStride apart
  int lane;

  template <int kLive>
  __device__ __forceinline__ void step(int j) {
    const float alpha = __shfl_sync(~0u, v[0], j), below = __shfl_sync(~0u, square, j);
    float x[kLive], part[4] = {};
#pragma unroll
    for (int i = 1; i < kLive; ++i) x[i] = __shfl_sync(~0u, v[i], j);
    Reflector r = make_reflector(alpha, below);
#pragma unroll
    for (int i = 1; i < kLive; ++i) part[i % 4] = fmaf(x[i], v[i], part[i % 4]);
    float d = (part[0] + part[1]) + (part[2] + part[3]), undo = 1, lift_now = 1;
    if (__builtin_expect(below < kTinySquare, 0)) {
      float most[4] = {};
#pragma unroll
      for (int i = 1; i < kLive; ++i) most[i % 4] = fmaxf(most[i % 4], fabsf(x[i]));
      const float tail = fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
      r = {alpha, 0, 0, 0};
      if (tail != 0) {
        const Scale scale = scale_for(fmaxf(tail, fabsf(alpha)));
        float sum = 0;
        d = 0;
#pragma unroll
        for (int i = 1; i < kLive; ++i) {
          x[i] *= scale.to;
          sum = fmaf(x[i], x[i], sum);
          d = fmaf(x[i], v[i], d);
        }
        r = make_reflector(alpha * scale.to, sum);
        undo = scale.back;
        lift_now = scale.to;
      }
    }
    const float t = fmaf(r.tau, v[0], r.over_norm * d);
    if (lane == j) {
      tau = r.tau;
      gamma = r.gamma;
      lift = lift_now;
    }
    const float mine = lane == j ? r.beta * undo : v[0] - t;
    rows[j * kRowStride + lane] = lane < j ? v[0] * lift * gamma : mine * back;
    const float u = lane > j ? -t * r.gamma : 0.0f;
    float sum[4] = {};
#pragma unroll
    for (int i = 1; i < kLive; ++i) {
      v[i - 1] = fmaf(u, x[i], v[i]);
      if (i > 1) sum[i % 4] = fmaf(v[i - 1], v[i - 1], sum[i % 4]);
    }
    v[kLive - 1] = 0;
    square = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  }

  template <int kLive>
  __device__ __forceinline__ void run(int j, int steps) {
    const int end = min(j + kSegment, steps);
#pragma unroll 1
    for (; j < end; ++j) step<kLive>(j);
    if constexpr (kLive > kSegment) {
      if (j < steps) run<kLive - kSegment>(j, steps);
    }
  }
};

template <int kRows, bool kAligned>
__global__ void __launch_bounds__(256)
    factor_lanes(const float* a, float* h, float* tau, int batch, int m, int n) {
  extern __shared__ float shared_memory[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int matrix = blockIdx.x * (blockDim.x / 32) + warp;
  if (matrix >= batch) return;
  const float* column = a + std::int64_t{matrix} * (m * n) + lane * m;
  Lane<kRows> s;
  s.lane = lane;
  s.rows = shared_memory + warp * (kRows * kRowStride);
  const int rows = lane < n ? m : 0;
  if constexpr (kAligned) {
#pragma unroll
    for (int i = 0; i < kRows; i += 4) {
      float4 four = make_float4(0, 0, 0, 0);
      if (i < rows) four = *reinterpret_cast<const float4*>(column + i);
      s.v[i] = four.x, s.v[i + 1] = four.y, s.v[i + 2] = four.z, s.v[i + 3] = four.w;
    }
  } else {
#pragma unroll
    for (int i = 0; i < kRows; ++i) s.v[i] = i < rows ? column[i] : 0.0f;
  }
  float most[4] = {}, sum[4] = {};
#pragma unroll
  for (int i = 0; i < kRows; ++i) most[i % 4] = fmaxf(most[i % 4], fabsf(s.v[i]));
  most[0] = fmaxf(fmaxf(most[0], most[1]), fmaxf(most[2], most[3]));
  s.back = 1;
  if (needs_scale(most[0])) {
    const Scale scale = scale_for(most[0]);
    s.back = scale.back;
#pragma unroll
    for (int i = 0; i < kRows; ++i) s.v[i] *= scale.to;
  }
#pragma unroll
  for (int i = 1; i < kRows; ++i) sum[i % 4] = fmaf(s.v[i], s.v[i], sum[i % 4]);
  s.square = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  s.tau = s.gamma = s.lift = 0;

  // The last row of a square or wide matrix has nothing below it.
  const int steps = min(m - 1, n);
  s.template run<kRows>(0, steps);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    if (steps + i >= m) break;
    s.rows[(steps + i) * kRowStride + lane] = s.v[i] * (lane < steps ? s.lift * s.gamma : s.back);
  }
  __syncwarp();
  float* to = h + std::int64_t{matrix} * (m * n) + lane;
  if (lane < m) {
#pragma unroll 4
    for (int c = 0; c < n; ++c) to[c * m] = s.rows[lane * kRowStride + c];
  }
  const int reflectors = min(m, n);
  if (lane < reflectors) tau[std::int64_t{matrix} * reflectors + lane] = s.tau;
}

template <int kRows>
auto* choose_kernel(int m) {
  return m % 4 == 0 ? factor_lanes<kRows, true> : factor_lanes<kRows, false>;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H");
  const auto tau = args.output<float>("tau");
  const int batch = static_cast<int>(a.dim(0)), m = static_cast<int>(a.dim(1)),
            n = static_cast<int>(a.dim(2));
  if (std::max(m, n) > 32) {
    plan.not_supported("a lane holds a column of at most 32 rows, a warp 32 columns");
    return;
  }
  const int matrices = batch >= plan.device().multiprocessors * kWarpMatrices ? kWarpMatrices : 1;
  const int rows = m <= 8 ? 8 : m <= 16 ? 16 : 32;
  auto* kernel = rows == 8    ? choose_kernel<8>(m)
                 : rows == 16 ? choose_kernel<16>(m)
                              : choose_kernel<32>(m);
  plan.launch(kernel,
              {.grid = (batch + matrices - 1) / matrices,
               .block = 32 * matrices,
               .shared_bytes = matrices * rows * kRowStride * 4},
              a, h, tau, batch, m, n);
}
