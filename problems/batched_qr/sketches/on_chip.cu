// Householder QR of matrices of at most 512 rows that stay on chip: up to 32 x 32 in the registers
// of a warp, otherwise eight columns a warp in those of a block or a cluster, as many columns as
// fit, then their reflectors to the rest, and so on. Sums over a warp are integer sums: one
// instruction instead of five exchanges.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kWarpMatrices, 4, 1, 2, 4, 8);  // matrices a block of the warp kernel, if many
KBEAM_KNOB(int, kSegment, 8, 8, 16, 32);        // steps between two cuts of the live rows
KBEAM_KNOB(int, kMostRanks, 2, 1, 2, 3, 4);     // blocks a matrix, if there are few

namespace {

// Columns whose largest element lies outside are multiplied by a power of two, which is exact for
// the reflectors and undone in R.
constexpr float kScaleBelow = 0x1p-16f, kScaleAbove = 0x1p16f;
// A sum of squares below this may have lost something to underflow; then the column is scaled
// again and summed anew.
constexpr float kTinySquare = 0x1p-90f;

// --- instructions ---
__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void barrier_init(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void barrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void barrier_expect(std::uint64_t* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier) {
  std::uint32_t done = 0;
  while (!done)
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
        " selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(shared_address(barrier))
        : "memory");
}
// Writes to the same place in the shared memory of block `rank`, and counts the bytes on its
// barrier.
__device__ __forceinline__ void send(float2* place, float2 value, std::uint64_t* barrier,
                                     int rank) {
  std::uint32_t to, on;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(to)
               : "r"(shared_address(place)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(on)
               : "r"(shared_address(barrier)), "r"(rank));
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(
          to),
      "r"(__float_as_uint(value.x)), "r"(__float_as_uint(value.y)), "r"(on)
      : "memory");
}
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ int cluster_size() {
  int size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}
// Over a warp. The sum wraps around.
__device__ __forceinline__ int warp_sum(int x) {
  int sum;
  asm volatile("redux.sync.add.s32 %0, %1, 0xffffffff;" : "=r"(sum) : "r"(x));
  return sum;
}
__device__ __forceinline__ std::uint32_t warp_most(std::uint32_t x) {
  std::uint32_t most;
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(x));
  return most;
}
__device__ __forceinline__ int to_integer(float x) {  // to nearest; NaN is 0, the rest saturates
  int i;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(i) : "f"(x));
  return i;
}
__device__ __forceinline__ float to_float(int i) {
  float x;
  asm("cvt.rn.f32.s32 %0, %1;" : "=f"(x) : "r"(i));
  return x;
}
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

// The compiler knows that the result of a sum over a warp is the same in all lanes. Without that it
// guards every exchange that depends on the warp's number against lanes that might be elsewhere.
__device__ __forceinline__ int warp_number() {
  return static_cast<int>(warp_most(threadIdx.x / 32));
}

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

// --- one warp a matrix, a lane a column ---

constexpr int kTileStride = 33;

// What the steps of one warp share. Registers move up by one row a step, so that v[0] is the row
// of the pivot and the steps can be a loop.
template <int kRows>
struct WarpSteps {
  float* slots;  // each pivot column as it was, from its diagonal on
  float* rows;   // finished rows, kTileStride apart
  float* to;
  int lane, m;
  float v[kRows], square;  // of the rows below v[0]
  float back, tau, gamma_before;

  // Column j is complete once the step after it has begun.
  __device__ __forceinline__ void write(int j) const {
    if (lane >= m) return;
    to[j * m + lane] =
        lane > j ? slots[j * kRows + lane - j] * gamma_before : rows[lane * kTileStride + j];
  }

  template <int kLive>
  __device__ __forceinline__ void step(int j) {
    float4* slot = reinterpret_cast<float4*>(slots + j * kRows);
    if (lane == j) {
#pragma unroll
      for (int i = 0; i < kLive; i += 4)
        slot[i / 4] = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    }
    Reflector r = make_reflector(v[0], square);
    if (square < kTinySquare) r.tau = -1;
    __syncwarp();
    float x[kLive];
#pragma unroll
    for (int i = 0; i < kLive; i += 4) {
      const float4 four = slot[i / 4];
      x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
    const auto dot = [&] {
      float part[4] = {};
#pragma unroll
      for (int i = 1; i < kLive; ++i) part[i % 4] = fmaf(x[i], v[i], part[i % 4]);
      return (part[0] + part[1]) + (part[2] + part[3]);
    };
    float d = dot(), undo = 1, lift = 1;
    r.tau = __shfl_sync(~0u, r.tau, j);
    r.over_norm = __shfl_sync(~0u, r.over_norm, j);
    r.gamma = __shfl_sync(~0u, r.gamma, j);
    if (r.tau < 0) {
      float tail = 0, alpha = x[0], sum = 0;
#pragma unroll
      for (int i = 1; i < kLive; ++i) tail = fmaxf(tail, fabsf(x[i]));
      const Scale scale = scale_for(fmaxf(tail, fabsf(alpha)));
      alpha *= scale.to;
      undo = scale.back;
      lift = scale.to;
#pragma unroll
      for (int i = 1; i < kLive; ++i) {
        x[i] *= scale.to;
        sum = fmaf(x[i], x[i], sum);
      }
      d = dot();
      r = make_reflector(alpha, sum);
      if (tail == 0) r = {alpha, 0, 0, 0};
    }
    if (j > 0) write(j - 1);
    const float t = fmaf(r.tau, v[0], r.over_norm * d), u = -t * r.gamma;
    rows[j * kTileStride + lane] = (lane == j ? r.beta * undo : v[0] - t) * back;
    if (lane == j) tau = r.tau;
    gamma_before = r.gamma * lift;
    float part[4] = {};
#pragma unroll
    for (int i = 1; i < kLive; ++i) {
      v[i - 1] = fmaf(u, x[i], v[i]);
      if (i > 1) part[i % 4] = fmaf(v[i - 1], v[i - 1], part[i % 4]);
    }
    v[kLive - 1] = 0;
    square = (part[0] + part[1]) + (part[2] + part[3]);
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

constexpr int kWarpFloats = 32 * 32 + 32 * kTileStride;

template <int kRows>
__global__ void __launch_bounds__(256)
    factor_in_warp(const float* a, float* h, float* tau, int batch, int m, int n) {
  extern __shared__ float4 shared_memory[];
  const int warp = warp_number(), lane = threadIdx.x % 32;
  const int matrix = blockIdx.x * (blockDim.x / 32) + warp;
  if (matrix >= batch) return;
  WarpSteps<kRows> s;
  s.slots = reinterpret_cast<float*>(shared_memory) + warp * kWarpFloats;
  s.rows = s.slots + 32 * 32;
  s.lane = lane;
  s.m = m;
  s.to = h + std::int64_t{matrix} * (m * n);
  const float* from = a + std::int64_t{matrix} * (m * n);

  float column[32];
#pragma unroll
  for (int c = 0; c < 32; ++c) column[c] = c < n && lane < m ? from[c * m + lane] : 0.0f;
#pragma unroll
  for (int c = 0; c < 32; ++c) s.rows[c * kTileStride + lane] = column[c];
  __syncwarp();
  float most = 0, sum[2] = {};
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    s.v[i] = s.rows[lane * kTileStride + i];
    most = fmaxf(most, fabsf(s.v[i]));
  }
  s.back = 1;
  if (needs_scale(most)) {
    const Scale scale = scale_for(most);
    s.back = scale.back;
#pragma unroll
    for (int i = 0; i < kRows; ++i) s.v[i] *= scale.to;
  }
#pragma unroll
  for (int i = 1; i < kRows; ++i) sum[i % 2] = fmaf(s.v[i], s.v[i], sum[i % 2]);
  s.square = sum[0] + sum[1];
  s.tau = 0;
  s.gamma_before = 0;
  __syncwarp();

  // The last row of a square or wide matrix has nothing below it.
  const int steps = min(m - 1, n);
  s.template run<kRows>(0, steps);
  if (steps < n) s.rows[steps * kTileStride + lane] = s.v[0] * s.back;
  __syncwarp();
  if (steps > 0) s.write(steps - 1);
  for (int j = steps; j < n; ++j) s.write(j);
  const int reflectors = min(m, n);
  if (lane < reflectors) tau[std::int64_t{matrix} * reflectors + lane] = s.tau;
}

// --- a warp eight columns, a block or a cluster a matrix ---

constexpr int kColumns = 8;
// Columns are kept below a norm of 2^kNormBits, and pivots near it: a product of two then fits an
// integer, and what rounding to integers loses is 2^-27 of the two norms. A sum of squares that is
// a small integer all the same is added up again in floating point.
constexpr int kNormBits = 14, kSmallSum = 1 << 22;

// The 32 lanes' shares of a pivot with kLive live rows a lane, then its factor.
__host__ __device__ constexpr int slot_floats(int live) {
  return live * 32 + 2;
}
// Pivot j is published with ceil((rows - 32 (j / 32)) / 32) rows a lane, rounded up to pairs.
__host__ __device__ constexpr int slot_place(int rows_a_lane, int j) {
  int place = 0;
  for (int block = 0; block < j / 32; ++block)
    place += 32 * slot_floats((rows_a_lane - block + 1) / 2 * 2);
  return place + j % 32 * slot_floats((rows_a_lane - j / 32 + 1) / 2 * 2);
}

constexpr std::int64_t shared_bytes(int rows_a_lane, int pivots) {
  return (pivots + 1) / 2 * 16 + slot_place(rows_a_lane, pivots) * 4;
}

// What a kernel works on: a matrix, or the rest of one right of and below finished columns.
struct Shape {
  int m, n;
  int reflectors;
  int stride;              // of columns
  int stored;              // finished columns, whose reflectors the others have yet to meet
  int taus;                // of a matrix
  std::int64_t matrix;     // elements from one to the next
  int rows_a_lane, warps;  // warps of a block
};

struct Place {
  const float* a;
  float* h;
  float* tau;
};

// Register q of a lane is row base + 32 q + lane; base moves on by 32 once those rows are final.
template <int kQ>
struct ColumnWarp {
  float v[kColumns][kQ];
  int lifted;  // lane k: column k is 2^lifted times what it was
  float* slots;
  std::uint64_t* bars;
  Place at;
  int m, n, stride, reflectors, rows_a_lane;
  int lane, mine, rank, ranks;

  __device__ __forceinline__ void load(int first_column) {
    mine = first_column;
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
#pragma unroll
      for (int q = 0; q < kQ; ++q) {
        const int row = q * 32 + lane, column = mine + k;
        v[k][q] = row < m && column < n ? at.a[column * stride + row] : 0.0f;
      }
  }
  __device__ __forceinline__ void bring_in_range() {
    lifted = 0;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      float most = 0;
#pragma unroll
      for (int q = 0; q < kQ; ++q) most = fmaxf(most, fabsf(v[k][q]));
      // max() drops a NaN, which then spoils its column later.
      most = __uint_as_float(warp_most(__float_as_uint(most)));
      if (most == 0 || most > 0x1.fffffep127f) continue;
      const Scale scale = scale_for(most);
#pragma unroll
      for (int q = 0; q < kQ; ++q) v[k][q] = v[k][q] * scale.to * 0x1p8f;
      if (lane == k) lifted = static_cast<int>(__float_as_uint(scale.to) >> 23) - 127 + 8;
    }
    equilibrate<kQ>(-1);
  }

  template <int kLive>
  __device__ __forceinline__ void scale_column(int k, int exponent) {
    const float factor = __uint_as_float((127 + exponent) << 23);
#pragma unroll
    for (int q = 0; q < kLive; ++q) v[k][q] *= factor;
    if (lane == k) lifted += exponent;
  }
  // Brings the norm of what lies below row `above` of each column to half of 2^kNormBits or more.
  template <int kLive>
  __device__ __forceinline__ void equilibrate(int above) {
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const float first = lane > above ? v[k][0] : 0.0f;
      float part[2] = {first * first, 0};
#pragma unroll
      for (int q = 1; q < kLive; ++q) part[q % 2] = fmaf(v[k][q], v[k][q], part[q % 2]);
      const int sum = warp_sum(to_integer(part[0] + part[1]));
      const int bits = 31 - __clz(max(sum, 1));
      if (sum > 0) scale_column<kLive>(k, kNormBits - 1 - bits / 2);
    }
  }

  // Pivot j of another warp meets my columns.
  template <int kLive>
  __device__ __forceinline__ void apply(int j, const float* slot) {
    barrier_wait(&bars[j]);
    float w[kLive];
#pragma unroll
    for (int q = 0; q < kLive; q += 2) {
      const float2 two = reinterpret_cast<const float2*>(slot)[q * 16 + lane];
      w[q] = two.x, w[q + 1] = two.y;
    }
    reflect<kLive>(w, slot[kLive * 32]);
  }
  template <int kLive>
  __device__ __forceinline__ void reflect(const float (&w)[kLive], float factor) {
    float d[kColumns];
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      float part[2] = {};
#pragma unroll
      for (int q = 0; q < kLive; ++q) part[q % 2] = fmaf(w[q], v[k][q], part[q % 2]);
      d[k] = to_float(warp_sum(to_integer(part[0] + part[1])));
    }
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const float u = factor * d[k];
#pragma unroll
      for (int q = 0; q < kLive; ++q) v[k][q] = fmaf(u, w[q], v[k][q]);
    }
  }

  // Pivot j as it stands in memory: v below the diagonal, 1 on it.
  template <int kLive>
  __device__ __forceinline__ void fetch(int j, int base, float (&x)[kLive], float& scale) const {
    const float* from = at.h + j * stride + base + lane;
#pragma unroll
    for (int q = 0; q < kLive; ++q) x[q] = base + q * 32 + lane < m ? from[q * 32] : 0.0f;
    if (lane <= j - base) x[0] = lane == j - base ? 1.0f : 0.0f;
    scale = -at.tau[j];
  }
  template <int kLive>
  __device__ __forceinline__ void apply_stored(int block, int pivots) {
#pragma unroll 1
    while (kLive == 2 || rows_a_lane - block > kLive - 2) {
      const int base = block * 32, end = min(base + 32, pivots);
      float next[kLive], next_scale;
      fetch<kLive>(base, base, next, next_scale);
#pragma unroll 1
      for (int j = base; j < end; ++j) {
        float w[kLive];
#pragma unroll
        for (int q = 0; q < kLive; ++q) w[q] = next[q];
        const float scale = next_scale;
        if (j + 1 < end) fetch<kLive>(j + 1, base, next, next_scale);
        reflect<kLive>(w, scale);
      }
      if (base + 32 >= pivots) {
#pragma unroll
        for (int q = 0; q < kLive; ++q) emit(base, q);
        return;
      }
      move_on<kLive>(base);
      ++block;
    }
    if constexpr (kLive > 2) apply_stored<kLive - 2>(block, pivots);
  }
  template <int kLive>
  __device__ __forceinline__ void move_on(int base) {
    emit(base, 0);
#pragma unroll
    for (int k = 0; k < kColumns; ++k)
#pragma unroll
      for (int q = 0; q < kLive; ++q)
        v[k][q] = q + 1 < kLive ? v[k][q + 1 < kLive ? q + 1 : 0] : 0.0f;
  }

  // Other warps take w = f (alpha - beta, x), and -2 / w'w.
  template <int kLive>
  __device__ __forceinline__ void publish(int j, const float (&w)[kLive], const Reflector& r) {
    const int exponent = static_cast<int>(__float_as_uint(fabsf(r.beta)) >> 23) - 127;
    const float f = __uint_as_float((127 + kNormBits - 1 - exponent) << 23);
    const float over_f = __uint_as_float((127 - kNormBits + 1 + exponent) << 23);
    const float factor = -(r.over_norm * over_f) * (r.gamma * over_f);
    float2* slot = reinterpret_cast<float2*>(slots + slot_place(rows_a_lane, j));
#pragma unroll
    for (int q = 0; q < kLive; q += 2) slot[q * 16 + lane] = make_float2(w[q] * f, w[q + 1] * f);
    if (lane == 0) slot[kLive * 16] = make_float2(factor, 0);
    __syncwarp();
    if (lane == 0) barrier_arrive(&bars[j]);
    for (int to = rank + 1; to < ranks; ++to) {
#pragma unroll
      for (int q = 0; q < kLive; q += 2)
        send(slot + q * 16 + lane, make_float2(w[q] * f, w[q + 1] * f), &bars[j], to);
      if (lane == 0) send(slot + kLive * 16, make_float2(factor, 0), &bars[j], to);
    }
  }

  // The pivot is v[0]. Afterwards it is v[7], and the others have moved down by one.
  // `live_columns`: those of v[1 ..] that are still to be updated.
  template <int kLive>
  __device__ __forceinline__ void own(int j, int live_columns) {
    const int row = j % 32;
    float x[kLive], top[kColumns], d[kColumns];
#pragma unroll
    for (int q = 0; q < kLive; ++q) x[q] = v[0][q];
    if (lane <= row) x[0] = 0;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) top[k] = __shfl_sync(~0u, v[k][0], row);
    float part[2] = {};
#pragma unroll
    for (int q = 0; q < kLive; ++q) part[q % 2] = fmaf(x[q], x[q], part[q % 2]);
    const int sum = warp_sum(to_integer(part[0] + part[1]));
#pragma unroll
    for (int k = 1; k < kColumns; ++k) {
      float share[2] = {};
#pragma unroll
      for (int q = 0; q < kLive; ++q) share[q % 2] = fmaf(x[q], v[k][q], share[q % 2]);
      d[k] = to_float(warp_sum(to_integer(share[0] + share[1])));
    }
    float alpha = top[0], square = to_float(sum), undo = 1;
    bool nonzero = true;
    if (sum < kSmallSum) {
      square = float_sum(part[0] + part[1]);
      if (square < kTinySquare) {
        float most = 0;
#pragma unroll
        for (int q = 0; q < kLive; ++q) most = fmaxf(most, fabsf(x[q]));
        most = __uint_as_float(warp_most(__float_as_uint(most)));
        nonzero = most != 0;
        const Scale scale = scale_for(fmaxf(most, fabsf(alpha)));
        undo = scale.back;
        alpha *= scale.to;
        float share[2] = {};
#pragma unroll
        for (int q = 0; q < kLive; ++q) {
          x[q] *= scale.to;
          share[q % 2] = fmaf(x[q], x[q], share[q % 2]);
        }
        square = float_sum(share[0] + share[1]);
      }
#pragma unroll
      for (int k = 1; k < kColumns; ++k) {
        float share[2] = {};
#pragma unroll
        for (int q = 0; q < kLive; ++q) share[q % 2] = fmaf(x[q], v[k][q], share[q % 2]);
        d[k] = float_sum(share[0] + share[1]);
      }
    }
    Reflector r = make_reflector(alpha, square);
    if (!nonzero) r = {alpha, 0, 0, 0};
    float w[kLive];
#pragma unroll
    for (int q = 0; q < kLive; ++q) w[q] = x[q];
    if (lane == row) w[0] = nonzero ? alpha - r.beta : 0.0f;
    publish<kLive>(j, w, r);
#pragma unroll
    for (int k = 1; k < kColumns; ++k) {
      const float t = fmaf(r.tau, top[k], r.over_norm * d[k]);
      const float u = k <= live_columns ? -t * r.gamma : 0.0f;
#pragma unroll
      for (int q = 0; q < kLive; ++q) {
        const float before = k == 1 && q == 0 ? v[0][0] : 0.0f;
        v[k - 1][q] = fmaf(u, w[q], v[k][q]);
        if (k == 1 && q == 0)
          x[0] = lane > row ? r.gamma * x[0] : lane == row ? r.beta * undo : before;
      }
    }
    v[kColumns - 1][0] = x[0];
#pragma unroll
    for (int q = 1; q < kLive; ++q) v[kColumns - 1][q] = r.gamma * x[q];
    if (lane == 0) at.tau[j] = r.tau;
  }
  __device__ __forceinline__ float float_sum(float x) const {
#pragma unroll
    for (int level = 16; level > 0; level >>= 1) x += __shfl_xor_sync(~0u, x, level);
    return x;
  }
  template <int kLive>
  __device__ __forceinline__ void rotate() {
    float first[kLive];
#pragma unroll
    for (int q = 0; q < kLive; ++q) first[q] = v[0][q];
#pragma unroll
    for (int k = 1; k < kColumns; ++k)
#pragma unroll
      for (int q = 0; q < kLive; ++q) v[k - 1][q] = v[k][q];
#pragma unroll
    for (int q = 0; q < kLive; ++q) v[kColumns - 1][q] = first[q];
  }

  // Writes the rows base + 32 q .. of my columns.
  __device__ __forceinline__ void emit(int base, int q) const {
    const int row = base + q * 32 + lane;
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const int exponent = __shfl_sync(~0u, lifted, k), half = exponent / 2;
      const float once = __uint_as_float((127 - half) << 23);
      const float again = __uint_as_float((127 - exponent + half) << 23);
      const int column = mine + k;
      const bool below = row > column && column < reflectors;
      if (row < m && column < n)
        at.h[column * stride + row] = below ? v[k][q] : v[k][q] * once * again;
    }
  }

  template <int kLive>
  __device__ __forceinline__ void run(int block) {
#pragma unroll 1
    while (kLive == 2 || rows_a_lane - block > kLive - 2) {
      const int base = block * 32, end = min(base + 32, min(mine, reflectors));
      const float* slot = slots + slot_place(rows_a_lane, base);
#pragma unroll 1
      for (int j = base; j < end; ++j) {
        if (j + 2 * kColumns == mine) equilibrate<kLive>(j % 32 - 1);
        apply<kLive>(j, slot);
        slot += slot_floats(kLive);
      }
      const bool is_mine = mine < min(base + 32, reflectors);
      if (is_mine) {
#pragma unroll 1
        for (int i = 0; i < kColumns; ++i) {
          if (mine + i < reflectors)
            own<kLive>(mine + i, kColumns - 1 - i);
          else
            rotate<kLive>();
        }
      }
      if (is_mine || base + 32 >= reflectors) {
#pragma unroll
        for (int q = 0; q < kLive; ++q) emit(base, q);
        return;
      }
      move_on<kLive>(base);
      ++block;
    }
    if constexpr (kLive > 2) run<kLive - 2>(block);
  }
};

template <int kQ>
__device__ __forceinline__ ColumnWarp<kQ> make_warp(Place at, const Shape& shape, int matrix) {
  ColumnWarp<kQ> w;
  w.at = {at.a + matrix * shape.matrix, at.h + matrix * shape.matrix,
          at.tau + std::int64_t{matrix} * shape.taus};
  w.m = shape.m, w.n = shape.n, w.stride = shape.stride, w.reflectors = shape.reflectors;
  w.rows_a_lane = shape.rows_a_lane;
  w.lane = threadIdx.x % 32;
  return w;
}

// Factors the columns, a cluster a matrix.
template <int kQ, int kThreads>
__global__ void __launch_bounds__(kThreads, 1)
    factor_columns(const float* a, float* h, float* tau, Shape shape) {
  extern __shared__ float4 shared_memory[];
  const int rank = cluster_rank(), ranks = cluster_size();
  ColumnWarp<kQ> w = make_warp<kQ>({a, h, tau}, shape, blockIdx.x / ranks);
  w.rank = rank, w.ranks = ranks;
  const int first_here = rank * shape.warps * kColumns;
  w.load(first_here + warp_number() * kColumns);
  w.bars = reinterpret_cast<std::uint64_t*>(shared_memory);
  w.slots = reinterpret_cast<float*>(w.bars + (shape.reflectors + 1) / 2 * 2);
  for (int i = threadIdx.x; i < shape.reflectors; i += blockDim.x) {
    barrier_init(&w.bars[i]);
    if (i < first_here)
      barrier_expect(&w.bars[i], 4 * slot_floats((shape.rows_a_lane - i / 32 + 1) / 2 * 2));
  }
  fence_barrier_init();
  cluster_sync();
  w.bring_in_range();
  w.template run<kQ>(0);
}

// Takes the reflectors of shape.stored finished columns to those right of them, eight a warp.
template <int kQ>
__global__ void __launch_bounds__(128, 2)
    apply_columns(const float* a, float* h, float* tau, Shape shape) {
  const int warps = (shape.n - shape.stored + kColumns - 1) / kColumns;
  const int blocks = (warps + 3) / 4;
  ColumnWarp<kQ> w = make_warp<kQ>({a, h, tau}, shape, blockIdx.x / blocks);
  const int warp = blockIdx.x % blocks * 4 + warp_number();
  if (warp >= warps) return;
  w.load(shape.stored + warp * kColumns);
  w.bring_in_range();
  // A stored v is near 1, not near 2^kNormBits: the columns make up for it.
#pragma unroll
  for (int k = 0; k < kColumns; ++k) w.template scale_column<kQ>(k, kNormBits - 1);
  w.template apply_stored<kQ>(0, shape.reflectors);
}

// --- the plan ---

struct Job {
  kbeam::Plan& plan;
  kbeam::DeviceTensor<const float> a;
  kbeam::DeviceTensor<float> h, tau;
  int batch, m, n;
};

void plan_warps(Job& job) {
  const int matrices = job.batch >= 132 * kWarpMatrices ? kWarpMatrices : 1;
  const kbeam::LaunchShape launch{.grid = (job.batch + matrices - 1) / matrices,
                                  .block = 32 * matrices,
                                  .shared_bytes = matrices * kWarpFloats * 4};
  auto* kernel = job.m <= 8    ? factor_in_warp<8>
                 : job.m <= 16 ? factor_in_warp<16>
                               : factor_in_warp<32>;
  job.plan.launch(kernel, launch, job.a, job.h, job.tau, job.batch, job.m, job.n);
}

// A part of the matrices, from row and column `first` on.
struct Part {
  kbeam::DevicePointer<const float> a;
  kbeam::DevicePointer<float> h, tau;
  int m, n;
};

template <int kQ>
constexpr int kWarps = kQ <= 4    ? 16
                       : kQ <= 8  ? 12
                       : kQ <= 12 ? 11
                                  : 10;

// Factors as many columns as a cluster holds, and takes them to the others.
template <int kQ>
int plan_part(Job& job, const Part& part) {
  int warps = (part.n + kColumns - 1) / kColumns;
  const int rows_a_lane = (part.m + 31) / 32;
  warps = std::min(warps, kWarps<kQ> * kMostRanks);
  while (shared_bytes(rows_a_lane, std::min(part.m, warps * kColumns)) >
         job.plan.device().shared_bytes_per_block)
    --warps;
  int ranks = (warps + kWarps<kQ> - 1) / kWarps<kQ>;
  while (ranks < kMostRanks && job.batch * (ranks + 1) <= job.plan.device().multiprocessors &&
         warps >= 4 * (ranks + 1))
    ++ranks;
  const int own = (warps + ranks - 1) / ranks;
  ranks = (warps + own - 1) / own;
  Shape shape{part.m, std::min(part.n, warps * kColumns)};
  shape.reflectors = std::min(shape.m, shape.n);
  shape.stride = job.m;
  shape.taus = std::min(job.m, job.n);
  shape.matrix = std::int64_t{job.m} * job.n;
  shape.rows_a_lane = rows_a_lane;
  shape.warps = own;
  job.plan.launch(factor_columns<kQ, 32 * kWarps<kQ>>,
                  {.grid = job.batch * ranks,
                   .block = 32 * own,
                   .cluster = {ranks, 1},
                   .shared_bytes = shared_bytes(rows_a_lane, shape.reflectors)},
                  part.a, part.h, part.tau, shape);
  if (shape.n < part.n) {
    shape.stored = shape.n;
    shape.n = part.n;
    const int blocks = (part.n - shape.stored + 4 * kColumns - 1) / (4 * kColumns);
    job.plan.launch(apply_columns<kQ>, {.grid = job.batch * blocks, .block = 128}, part.a, part.h,
                    part.tau, shape);
  }
  return shape.reflectors;
}

void plan_columns(Job& job) {
  Part part{job.a, job.h, job.tau, job.m, job.n};
  while (part.m > 0 && part.n > 0) {
    const int done = part.m <= 64    ? plan_part<2>(job, part)
                     : part.m <= 128 ? plan_part<4>(job, part)
                     : part.m <= 192 ? plan_part<6>(job, part)
                     : part.m <= 256 ? plan_part<8>(job, part)
                     : part.m <= 384 ? plan_part<12>(job, part)
                                     : plan_part<16>(job, part);
    const std::int64_t on = std::int64_t{done} * job.m + done;
    part = {part.h + on, part.h + on, part.tau + done, part.m - done, part.n - done};
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  Job job{plan, args.input<float>("A"), args.output<float>("H"), args.output<float>("tau"), 0, 0,
          0};
  job.batch = static_cast<int>(job.a.dim(0));
  job.m = static_cast<int>(job.a.dim(1));
  job.n = static_cast<int>(job.a.dim(2));
  if (std::max(job.m, job.n) <= 32)
    plan_warps(job);
  else if (job.m > 512)
    plan.not_supported("columns of more than 512 rows do not fit on chip here");
  else
    plan_columns(job);
}
