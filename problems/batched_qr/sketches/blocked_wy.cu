// Blocked Householder QR: up to 32 x 32 a warp holds a matrix, up to 192 x 192 a thread block, and
// beyond that panels are factored in the registers of one block or of a cluster, with T, and the
// rest is updated by library products. Columns are in registers throughout; no kernel is tuned.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kPanel, 64, 32, 64);         // columns a panel
KBEAM_KNOB(int, kWholeColumns, 8, 4, 8);     // columns a warp, where a block holds the matrix
KBEAM_KNOB(int, kPanelColumns, 4, 2, 4);     // columns a warp in a panel
KBEAM_KNOB(int, kSliceRows, 512, 256, 512);  // rows of a panel that one block of a cluster holds
KBEAM_KNOB(int, kWarpLimit, 32, 0, 32);      // largest matrix of a single warp
KBEAM_KNOB(int, kWholeLimit, 192, 64, 128, 192);  // largest matrix of a single block
KBEAM_KNOB(int, kWarpMatrices, 4, 1, 2, 4, 8);    // matrices a block of the warp kernel, if many
KBEAM_REQUIRE(kPanel / kPanelColumns <= 32, "a block has at most 32 warps");
KBEAM_REQUIRE(kWholeLimit / kWholeColumns <= 32, "a block has at most 32 warps");

namespace {

// Columns whose largest element lies outside are multiplied by a power of two, which is exact for
// the reflectors and undone in R.
constexpr float kScaleBelow = 0x1p-16f, kScaleAbove = 0x1p16f;
// A sum of squares below this may have lost something to underflow; then the column is scaled
// again and summed anew.
constexpr float kTinySquare = 0x1p-90f;

struct Shape {
  int m, n;           // of the matrix; m is the leading dimension
  int first;          // row and column where the panel begins
  int rows, columns;  // of the panel
  int reflectors;
  int taus;  // of a matrix
};

// --- instructions ---

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void barrier_init(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
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
template <bool kFromCluster>
__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier, int parity) {
  std::uint32_t done = 0;
  while (!done) {
    if constexpr (kFromCluster)
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
          " selp.u32 %0, 1, 0, p;}"
          : "=r"(done)
          : "r"(shared_address(barrier)), "r"(parity)
          : "memory");
    else
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
          " selp.u32 %0, 1, 0, p;}"
          : "=r"(done)
          : "r"(shared_address(barrier)), "r"(parity)
          : "memory");
  }
}
// Writes to the same place in the shared memory of block `rank`, and counts the bytes on its
// barrier.
__device__ __forceinline__ void send(float4* place, float4 value, std::uint64_t* barrier,
                                     int rank) {
  std::uint32_t to, on;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(to)
               : "r"(shared_address(place)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(on)
               : "r"(shared_address(barrier)), "r"(rank));
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(to),
      "r"(__float_as_uint(value.x)), "r"(__float_as_uint(value.y)), "r"(__float_as_uint(value.z)),
      "r"(__float_as_uint(value.w)), "r"(on)
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
__device__ __forceinline__ float reciprocal(float x) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return fmaf(r, fmaf(-x, r, 1.0f), r);
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

// v = (1, gamma x); H = I - tau v v' takes (alpha, x) to (beta, 0).
struct Reflector {
  float beta, tau, gamma;
};
__device__ __forceinline__ Reflector make_reflector(float alpha, float square) {
  const float sum = fmaf(alpha, alpha, square);
  float r = reciprocal_root(sum);
  float norm = sum * r;
  norm = fmaf(0.5f * r, fmaf(-norm, norm, sum), norm);
  r = fmaf(r, fmaf(-norm, r, 1.0f), r);
  const float head = fabsf(alpha) + norm;
  return {-copysignf(norm, alpha), head * r, copysignf(reciprocal(head), alpha)};
}

__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
  for (int level = 16; level > 0; level >>= 1) x = fmaxf(x, __shfl_xor_sync(~0u, x, level));
  return x;
}

// --- one warp a matrix, a lane a column ---

constexpr int kWarpStride = 33, kGroup = 8;  // rows that leave the registers together
constexpr int kWarpFloats = 32 * kWarpStride + 2 * 32 + 32;

template <int kRows>
__global__ void __launch_bounds__(256)
    factor_in_warp(const float* a, float* h, float* tau, int batch, int m, int n) {
  extern __shared__ float4 shared_memory[];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int matrix = blockIdx.x * (blockDim.x / 32) + warp;
  if (matrix >= batch) return;
  float4* pivots = shared_memory + warp * (kWarpFloats / 4);  // two columns of 32
  float* tile = reinterpret_cast<float*>(pivots + 16);
  const int elements = m * n, reflectors = min(m, n);
  const float* from = a + std::int64_t{matrix} * elements;
  float* to = h + std::int64_t{matrix} * elements;

  for (int e = lane; e < elements; e += 32) tile[e / m * kWarpStride + e % m] = from[e];
  __syncwarp();
  float v[kRows], most = 0;
  const bool mine = lane < n;
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    v[i] = mine && i < m ? tile[lane * kWarpStride + i] : 0.0f;
    most = fmaxf(most, fabsf(v[i]));
  }
  float back = 1;
  if (needs_scale(most)) {
    const Scale scale = scale_for(most);
    back = scale.back;
#pragma unroll
    for (int i = 0; i < kRows; ++i) v[i] *= scale.to;
  }

  for (int base = 0; base < m; base += kGroup) {
#pragma unroll
    for (int g = 0; g < kGroup; ++g) {
      const int j = base + g;
      if (j >= reflectors) break;
      float* pivot = reinterpret_cast<float*>(pivots + j % 2 * 8);
      if (lane == j) {
#pragma unroll
        for (int i = 0; i < kRows; i += 4)
          reinterpret_cast<float4*>(pivot)[i / 4] = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
      }
      __syncwarp();
      float x[kRows];
#pragma unroll
      for (int i = 0; i < kRows; i += 4) {
        const float4 four = reinterpret_cast<const float4*>(pivot)[i / 4];
        x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
      }
      float alpha = x[g], undo = 1;
      const auto dot = [&] {
        float part[4] = {};
#pragma unroll
        for (int i = g + 1; i < kRows; ++i) part[i % 4] = fmaf(x[i], v[i], part[i % 4]);
        return (part[0] + part[1]) + (part[2] + part[3]);
      };
      float d = dot(), square = __shfl_sync(~0u, d, j);
      bool nonzero = true;
      if (square < kTinySquare) {
        float tail = 0;
#pragma unroll
        for (int i = g + 1; i < kRows; ++i) tail = fmaxf(tail, fabsf(x[i]));
        nonzero = tail != 0;
        const Scale scale = scale_for(fmaxf(tail, fabsf(alpha)));
        alpha *= scale.to;
        undo = scale.back;
        square = 0;
#pragma unroll
        for (int i = g + 1; i < kRows; ++i) {
          x[i] *= scale.to;
          square = fmaf(x[i], x[i], square);
        }
        d = dot();
      }
      Reflector r = make_reflector(alpha, square);
      if (!nonzero) r = {alpha, 0, 0};
      if (lane == j) {
        v[g] = r.beta * undo;
#pragma unroll
        for (int i = g + 1; i < kRows; ++i) v[i] = r.gamma * x[i];
        tau[std::int64_t{matrix} * reflectors + j] = r.tau;
      } else if (lane > j) {
        const float t = r.tau * fmaf(r.gamma, d, v[g]), u = -t * r.gamma;
        v[g] -= t;
#pragma unroll
        for (int i = g + 1; i < kRows; ++i) v[i] = fmaf(u, x[i], v[i]);
      }
    }
    // Rows of this group are final: R on and above the diagonal, reflectors below it.
#pragma unroll
    for (int g = 0; g < kGroup; ++g)
      if (base + g < m) tile[lane * kWarpStride + base + g] = lane >= base + g ? v[g] * back : v[g];
#pragma unroll
    for (int i = 0; i < kRows; ++i) v[i] = i + kGroup < kRows ? v[i + kGroup] : 0.0f;
  }
  __syncwarp();
  for (int e = lane; e < elements; e += 32) to[e] = tile[e / m * kWarpStride + e % m];
}

// --- columns in the registers of a block or a cluster ---

// What the warps of a block share. Rows of the panel are divided over the blocks of the cluster.
struct Shared {
  float4* slots;               // the pivot columns, each as its owner's registers
  float* gram;                 // v_i'v_j for i < j, by rows of kPanel
  float* triangle;             // T, by rows of kPanel
  float4* letters;             // [warp][parity][rank]: partial sums from all ranks
  std::uint64_t* column_bars;  // one a pivot column; 32 lanes arrive
  std::uint64_t* letter_bars;  // [warp][parity]
  float* heads;                // the diagonal elements before their reflection
  float* taus;
  float* backs;  // what undoes the scale of a column
};

template <int kC, bool kCluster>
constexpr int kLetterWords = kCluster ? (2 * kC + 2 + 3) / 4 : 0;

template <int kQ, int kC, bool kCluster, bool kIsPanel>
constexpr std::int64_t shared_bytes(int columns, int ranks) {
  const std::int64_t warps = (columns + kC - 1) / kC;
  std::int64_t bytes = std::int64_t{columns} * kQ * 128;
  if (kIsPanel) bytes += 2 * kPanel * kPanel * 4;
  bytes += warps * 2 * ranks * kLetterWords<kC, kCluster> * 16;
  return bytes + columns * 8 + warps * 2 * 8 + (columns + warps * kC) * 8;
}

template <int kQ, int kC, bool kCluster, bool kIsPanel>
__device__ __forceinline__ Shared carve(float4* memory, int columns, int ranks) {
  const int warps = (columns + kC - 1) / kC;
  Shared s{};
  s.slots = memory;
  memory += columns * kQ * 8;
  if constexpr (kIsPanel) {
    s.gram = reinterpret_cast<float*>(memory);
    s.triangle = s.gram + kPanel * kPanel;
    memory += 2 * kPanel * kPanel / 4;
  }
  s.letters = memory;
  memory += warps * 2 * ranks * kLetterWords<kC, kCluster>;
  s.column_bars = reinterpret_cast<std::uint64_t*>(memory);
  s.letter_bars = s.column_bars + columns;
  s.heads = reinterpret_cast<float*>(s.letter_bars + warps * 2);
  s.taus = s.heads + columns;
  s.backs = s.taus + columns;
  return s;
}

// One warp's columns and all that it does with them. Register q of a lane is row base + 32 q + lane
// of this block's rows; `base` moves on by 32 once those rows are final, so that the diagonal
// element of the pivot is always in register 0.
template <int kQ, int kC, bool kCluster, bool kIsPanel>
struct ColumnWarp {
  enum class Pivot { before_mine, mine, after_mine };

  Shared shared;
  float v[kC][kQ];
  int warp, lane, rank, ranks;
  int mine;  // first of my columns
  int base;
  int letters_sent;

  // The shared memory holds registers of four rows a lane where that is possible.
  __device__ __forceinline__ void put_slot(int j, const float (&x)[kQ]) {
    float* slot = reinterpret_cast<float*>(shared.slots) + j * (kQ * 32);
    if constexpr (kQ % 4 == 0) {
#pragma unroll
      for (int q = 0; q < kQ; q += 4)
        reinterpret_cast<float4*>(slot)[q * 8 + lane] =
            make_float4(x[q], x[q + 1], x[q + 2], x[q + 3]);
    } else {
#pragma unroll
      for (int q = 0; q < kQ; ++q) slot[q * 32 + lane] = x[q];
    }
  }
  __device__ __forceinline__ void get_slot(int j, float (&x)[kQ]) const {
    const float* slot = reinterpret_cast<const float*>(shared.slots) + j * (kQ * 32);
    if constexpr (kQ % 4 == 0) {
#pragma unroll
      for (int q = 0; q < kQ; q += 4) {
        const float4 four = reinterpret_cast<const float4*>(slot)[q * 8 + lane];
        x[q] = four.x, x[q + 1] = four.y, x[q + 2] = four.z, x[q + 3] = four.w;
      }
    } else {
#pragma unroll
      for (int q = 0; q < kQ; ++q) x[q] = slot[q * 32 + lane];
    }
  }
  __device__ __forceinline__ bool has_heads() const {
    return !kCluster || rank == 0;
  }

  __device__ __forceinline__ void take_tail(const float (&column)[kQ], int j,
                                            float (&x)[kQ]) const {
#pragma unroll
    for (int q = 0; q < kQ; ++q) x[q] = column[q];
    if (has_heads() && lane <= j % 32) x[0] = 0;
  }
  // The registers of the first column of 32 rows have not moved on yet when it is published.
  __device__ __forceinline__ void publish(const float (&column)[kQ], int j) {
    const bool ahead = has_heads() && j % 32 == 0 && j > 0;
    float now[kQ], x[kQ];
#pragma unroll
    for (int q = 0; q < kQ; ++q)
      now[q] = !ahead ? column[q] : q + 1 < kQ ? column[q + 1 < kQ ? q + 1 : 0] : 0.0f;
    take_tail(now, j, x);
    put_slot(j, x);
    if (lane == j % 32) shared.heads[j] = has_heads() ? now[0] : 0.0f;
    // Every lane for its own writes: one for all would be as right, but racecheck cannot follow
    // that.
    barrier_arrive(&shared.column_bars[j]);
  }

  // Sums (or maxima) over all blocks of the cluster, the same bits in every one of them. A letter
  // of round i + 2 is written only after everyone has read round i: the sender has round i + 1 from
  // all.
  template <bool kMax>
  __device__ __forceinline__ void exchange(float (&all)[2 * kC + 2]) {
    if constexpr (!kCluster) return;
    constexpr int kWords = kLetterWords<kC, true>;
    const int parity = letters_sent % 2, phase = letters_sent / 2 % 2;
    ++letters_sent;
    float4* box = shared.letters + (warp * 2 + parity) * ranks * kWords;
    std::uint64_t* bar = &shared.letter_bars[warp * 2 + parity];
    if (lane == 0) barrier_expect(bar, ranks * kWords * 16);
    float4 word[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const auto at = [&](int e) { return e < 2 * kC + 2 ? all[e < 2 * kC + 2 ? e : 0] : 0.0f; };
      word[i] = make_float4(at(4 * i), at(4 * i + 1), at(4 * i + 2), at(4 * i + 3));
    }
    if (lane < ranks) {
#pragma unroll
      for (int i = 0; i < kWords; ++i) send(box + rank * kWords + i, word[i], bar, lane);
    }
    barrier_wait<true>(bar, phase);
#pragma unroll
    for (int e = 0; e < 2 * kC + 2; ++e) all[e] = 0;
    for (int r = 0; r < ranks; ++r)
#pragma unroll
      for (int i = 0; i < kWords; ++i) {
        const float4 got = box[r * kWords + i];
        const float part[4] = {got.x, got.y, got.z, got.w};
#pragma unroll
        for (int e = 0; e < 4; ++e)
          if (4 * i + e < 2 * kC + 2) {
            float& sum = all[4 * i + e < 2 * kC + 2 ? 4 * i + e : 0];
            sum = kMax ? fmaxf(sum, part[e]) : sum + part[e];
          }
      }
  }

  // all[k] = x'v_k over the rows below the diagonal, all[kC + k] = row j of column k, then x'x and
  // the diagonal element.
  __device__ __forceinline__ void sums(const float (&x)[kQ], int j, int owned, float alpha,
                                       float (&all)[2 * kC + 2]) {
#pragma unroll
    for (int k = 0; k <= kC; ++k) {
      const int at = k < kC ? k : 2 * kC;
      if (k == owned) {
        all[at] = 0;
        continue;
      }
      float part[2] = {};
#pragma unroll
      for (int q = 0; q < kQ; ++q)
        part[q % 2] = fmaf(x[q], k < kC ? v[k < kC ? k : 0][q] : x[q], part[q % 2]);
      all[at] = part[0] + part[1];
    }
#pragma unroll
    for (int level = 16; level > 0; level >>= 1)
#pragma unroll
      for (int k = 0; k <= kC; ++k) {
        const int at = k < kC ? k : 2 * kC;
        if (k != owned) all[at] += __shfl_xor_sync(~0u, all[at], level);
      }
#pragma unroll
    for (int k = 0; k < kC; ++k) {
      const float top = __shfl_sync(~0u, v[k][0], j % 32);
      all[kC + k] = has_heads() ? top : 0.0f;
    }
    all[2 * kC + 1] = alpha;
    exchange<false>(all);
  }

  __device__ __forceinline__ void update(int k, int j, const float (&x)[kQ], const Reflector& r,
                                         const float (&all)[2 * kC + 2]) {
    const float t = r.tau * fmaf(r.gamma, all[k], all[kC + k]), u = -t * r.gamma;
#pragma unroll
    for (int q = 0; q < kQ; ++q) v[k][q] = fmaf(u, x[q], v[k][q]);
    if (has_heads() && lane == j % 32) v[k][0] -= t;
  }

  // Pivot column j meets all of my columns. `owned`: which of them it is, or -1.
  template <Pivot kPivot>
  __device__ __forceinline__ void step(int j, int owned, int columns, float* tau) {
    float x[kQ], all[2 * kC + 2], alpha;
    if constexpr (kPivot == Pivot::mine) {
      take_tail(v[owned], j, x);
      alpha = __shfl_sync(~0u, v[owned][0], j % 32);
      if (!has_heads()) alpha = 0;
    } else {
      barrier_wait<false>(&shared.column_bars[j], 0);
      get_slot(j, x);
      alpha = shared.heads[j];
    }
    sums(x, j, owned, alpha, all);
    float undo = 1;
    bool nonzero = true;
    if (all[2 * kC] < kTinySquare) {
      alpha = all[2 * kC + 1];
      float most = 0, tail[2 * kC + 2] = {};
#pragma unroll
      for (int q = 0; q < kQ; ++q) most = fmaxf(most, fabsf(x[q]));
      tail[0] = warp_max(most);
      exchange<true>(tail);
      nonzero = tail[0] != 0;
      const Scale scale = scale_for(fmaxf(tail[0], fabsf(alpha)));
      undo = scale.back;
#pragma unroll
      for (int q = 0; q < kQ; ++q) x[q] *= scale.to;
      sums(x, j, owned, has_heads() ? alpha * scale.to : 0.0f, all);
    }
    alpha = all[2 * kC + 1];
    Reflector r = make_reflector(alpha, all[2 * kC]);
    if (!nonzero) r = {alpha, 0, 0};

    if constexpr (kPivot == Pivot::before_mine) {
      update(0, j, x, r, all);
      if (j + 1 == mine) publish(v[0], mine);
#pragma unroll
      for (int k = 1; k < kC; ++k) update(k, j, x, r, all);
    }
    if constexpr (kPivot == Pivot::mine) {
#pragma unroll
      for (int k = 0; k < kC; ++k) {
        if (k <= owned) continue;
        update(k, j, x, r, all);
        if (k == owned + 1 && j + 1 < columns) publish(v[k], j + 1);
      }
#pragma unroll
      for (int q = 1; q < kQ; ++q) v[owned][q] = r.gamma * x[q];
      const float below = r.gamma * x[0];
      if (!has_heads() || lane > j % 32)
        v[owned][0] = below;
      else if (lane == j % 32)
        v[owned][0] = r.beta * undo;
      if (lane == 0 && has_heads()) {
        *tau = r.tau;
        shared.taus[j] = r.tau;
      }
    }
    if constexpr (kIsPanel && kPivot != Pivot::before_mine) {
      // v_k'v_j for my finished columns k: row j of v_k counts once, v_j has its 1 there.
      if (lane == 0 && has_heads()) {
#pragma unroll
        for (int k = 0; k < kC; ++k)
          if ((kPivot == Pivot::after_mine || k < owned))
            shared.gram[(mine + k) * kPanel + j] = fmaf(r.gamma, all[k], all[kC + k]);
      }
    }
  }
};

// T of `width` reflectors from their products: T_ll = tau_l, T_kl = -tau_l sum_s T_ks (v_s'v_l).
// A lane a row, 32 at a time; then the blocks above the diagonal.
__device__ __forceinline__ void make_triangle(const Shared& s, int width) {
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  constexpr int kBlocks = kPanel / 32;
  for (int e = threadIdx.x; e < kPanel * kPanel; e += blockDim.x) {
    s.triangle[e] = 0;
    const int row = e / kPanel, column = e % kPanel;
    if (row >= column || column >= width) s.gram[e] = 0;
  }
  __syncthreads();
  if (warp < kBlocks && warp * 32 < width) {
    const int at = warp * 32;
    float t[32];
#pragma unroll
    for (int l = 0; l < 32; ++l) {
      float sum[4] = {};
#pragma unroll
      for (int i = 0; i < l; ++i)
        sum[i % 4] = fmaf(t[i], s.gram[(at + i) * kPanel + at + l], sum[i % 4]);
      const float tau = at + l < width ? s.taus[at + l] : 0.0f;
      const float value = -tau * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
      t[l] = l < lane ? 0.0f : l == lane ? tau : value;
    }
#pragma unroll
    for (int l = 0; l < 32; ++l) s.triangle[(at + lane) * kPanel + at + l] = t[l];
  }
  __syncthreads();
  if constexpr (kBlocks == 2) {
    if (width <= 32) return;
    // T_12 = -T_11 (G_12 T_22); the inner product goes where T_21 is, and is cleared again.
    for (int e = threadIdx.x; e < 32 * 32; e += blockDim.x) {
      const int i = e / 32, j = e % 32;
      float sum = 0;
#pragma unroll 8
      for (int l = 0; l < 32; ++l)
        sum = fmaf(s.gram[i * kPanel + 32 + l], s.triangle[(32 + l) * kPanel + 32 + j], sum);
      s.triangle[(32 + i) * kPanel + j] = sum;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < 32 * 32; e += blockDim.x) {
      const int i = e / 32, j = e % 32;
      float sum = 0;
#pragma unroll 8
      for (int l = 0; l < 32; ++l)
        sum = fmaf(s.triangle[i * kPanel + l], s.triangle[(32 + l) * kPanel + j], sum);
      s.triangle[i * kPanel + 32 + j] = -sum;
    }
    __syncthreads();
    for (int e = threadIdx.x; e < 32 * 32; e += blockDim.x)
      s.triangle[(32 + e / 32) * kPanel + e % 32] = 0;
    __syncthreads();
  }
}

// Factors a panel (in place, with V and T) or a whole matrix (from a to h, scaling its columns).
template <int kQ, int kC, bool kCluster, bool kIsPanel, int kThreads, int kBlocks>
__global__ void __launch_bounds__(kThreads, kBlocks)
    factor_columns(const float* a, float* h, float* tau, float* v_out, float* t_out, Shape shape) {
  extern __shared__ float4 shared_memory[];
  using Warp = ColumnWarp<kQ, kC, kCluster, kIsPanel>;
  using Pivot = typename Warp::Pivot;
  Warp w;
  w.warp = threadIdx.x / 32;
  w.lane = threadIdx.x % 32;
  w.rank = kCluster ? cluster_rank() : 0;
  w.ranks = kCluster ? cluster_size() : 1;
  w.mine = w.warp * kC;
  w.base = 0;
  w.letters_sent = 0;
  w.shared = carve<kQ, kC, kCluster, kIsPanel>(shared_memory, shape.columns, w.ranks);

  const int matrix = blockIdx.x / w.ranks;
  const std::int64_t place =
      std::int64_t{matrix} * shape.m * shape.n + std::int64_t{shape.first} * shape.m + shape.first;
  const int first_row = w.rank * kQ * 32;
  const float* from = a + place + std::int64_t{w.mine} * shape.m + first_row;
  float* to = h + place + std::int64_t{w.mine} * shape.m + first_row;
  float* v_to =
      v_out + (std::int64_t{matrix} * kPanel + w.mine) * shape.m + shape.first + first_row;
  float* taus = tau + std::int64_t{matrix} * shape.taus + shape.first;
  const int rows = min(shape.rows - first_row, kQ * 32);  // of mine

#pragma unroll
  for (int k = 0; k < kC; ++k)
#pragma unroll
    for (int q = 0; q < kQ; ++q) {
      const int row = q * 32 + w.lane;
      w.v[k][q] =
          row < rows && w.mine + k < shape.columns ? from[std::int64_t{k} * shape.m + row] : 0.0f;
    }
  if constexpr (!kIsPanel) {
#pragma unroll
    for (int k = 0; k < kC; ++k) {
      float most = 0;
#pragma unroll
      for (int q = 0; q < kQ; ++q) most = fmaxf(most, fabsf(w.v[k][q]));
      most = warp_max(most);
      const Scale scale = needs_scale(most) ? scale_for(most) : Scale{1, 1};
      if (w.lane == k) w.shared.backs[w.mine + k] = scale.back;
#pragma unroll
      for (int q = 0; q < kQ; ++q) w.v[k][q] *= scale.to;
    }
  }
  for (int i = threadIdx.x; i < shape.columns; i += blockDim.x)
    barrier_init(&w.shared.column_bars[i], 32);
  if constexpr (kCluster) {
    for (int i = threadIdx.x; i < static_cast<int>(blockDim.x) / 16; i += blockDim.x)
      barrier_init(&w.shared.letter_bars[i], 1);
    fence_barrier_init();
    cluster_sync();
  }
  __syncthreads();

  // Writes register 0's rows, which are final.
  const auto emit = [&] {
    const int row = w.base + w.lane;
    if (row >= rows) return;
#pragma unroll
    for (int k = 0; k < kC; ++k) {
      const int column = w.mine + k;
      if (column >= shape.columns) continue;
      const int below = first_row + row - column;  // how far below the diagonal
      float value = w.v[k][0];
      if (!kIsPanel && below <= 0) value *= w.shared.backs[column];
      to[std::int64_t{k} * shape.m + row] = value;
      if constexpr (kIsPanel)
        if (column < shape.reflectors)
          v_to[std::int64_t{k} * shape.m + row] = below < 0 ? 0.0f : below == 0 ? 1.0f : w.v[k][0];
    }
  };
  const auto move_on = [&] {
    emit();
    w.base += 32;
#pragma unroll
    for (int k = 0; k < kC; ++k)
#pragma unroll
      for (int q = 0; q < kQ; ++q) w.v[k][q] = q + 1 < kQ ? w.v[k][q + 1 < kQ ? q + 1 : 0] : 0.0f;
  };
  const auto after = [&](int j) {
    if (w.has_heads() && j % 32 == 31) move_on();
  };

  if (w.warp == 0 && shape.reflectors > 0) w.publish(w.v[0], 0);
  for (int j = 0; j < min(w.mine, shape.reflectors); ++j) {
    w.template step<Pivot::before_mine>(j, -1, shape.columns, nullptr);
    after(j);
  }
#pragma unroll
  for (int k = 0; k < kC; ++k) {
    const int j = w.mine + k;
    if (j >= shape.reflectors) break;
    w.template step<Pivot::mine>(j, k, shape.columns, taus + j);
    if (k == kC - 1) after(j);
  }
  if constexpr (kIsPanel) {
    for (int j = w.mine + kC; j < shape.reflectors; ++j) {
      w.template step<Pivot::after_mine>(j, -1, shape.columns, nullptr);
      after(j);
    }
  }
#pragma unroll
  for (int q = 0; q < kQ; ++q) {
    if (w.base < rows) move_on();
  }
  if constexpr (kIsPanel) {
    __syncthreads();
    if (w.has_heads()) {
      make_triangle(w.shared, shape.reflectors);
      float* t = t_out + std::int64_t{matrix} * kPanel * kPanel;
      for (int e = threadIdx.x; e < kPanel * kPanel; e += blockDim.x)
        t[e / kPanel + e % kPanel * kPanel] = w.shared.triangle[e];  // column-major
    }
  }
  if constexpr (kCluster) cluster_sync();
}

// --- scales of the blocked path ---

constexpr int kCopyWarps = 8, kCopyRows = 16;

// H = A with every column in range; a warp a column.
__global__ void __launch_bounds__(32 * kCopyWarps)
    copy_scaled(const float* a, float* h, float* backs, int m, int n, std::int64_t count) {
  const int lane = threadIdx.x % 32;
  const std::int64_t column = std::int64_t{blockIdx.x} * kCopyWarps + threadIdx.x / 32;
  if (column >= count) return;
  const float* from = a + column * m;
  float* to = h + column * m;
  float most = 0, x[kCopyRows];
  for (int base = 0; base < m; base += 32 * kCopyRows) {
#pragma unroll
    for (int q = 0; q < kCopyRows; ++q) {
      const int row = base + q * 32 + lane;
      x[q] = row < m ? from[row] : 0.0f;
    }
#pragma unroll
    for (int q = 0; q < kCopyRows; ++q) most = fmaxf(most, fabsf(x[q]));
  }
  most = warp_max(most);
  const Scale scale = needs_scale(most) ? scale_for(most) : Scale{1, 1};
  for (int base = 0; base < m; base += 32 * kCopyRows) {
    if (m > 32 * kCopyRows) {
#pragma unroll
      for (int q = 0; q < kCopyRows; ++q) {
        const int row = base + q * 32 + lane;
        x[q] = row < m ? from[row] : 0.0f;
      }
    }
#pragma unroll
    for (int q = 0; q < kCopyRows; ++q) {
      const int row = base + q * 32 + lane;
      if (row < m) to[row] = x[q] * scale.to;
    }
  }
  if (lane == 0) backs[column] = scale.back;
}

// Undoes the scales in R. A block looks after 256 columns and has nothing to do for most inputs.
__global__ void __launch_bounds__(256)
    unscale(float* h, const float* backs, int m, int n, std::int64_t count) {
  __shared__ float scales[256];
  const std::int64_t first = std::int64_t{blockIdx.x} * 256;
  const std::int64_t own = first + threadIdx.x;
  const float back = own < count ? backs[own] : 1.0f;
  scales[threadIdx.x] = back;
  if (!__syncthreads_or(back != 1)) return;
  for (int i = 0; i < 256 && first + i < count; ++i) {
    if (scales[i] == 1) continue;
    const int column = static_cast<int>((first + i) % n);
    float* x = h + (first + i) * m;
    for (int row = threadIdx.x; row < min(m, column + 1); row += 256) x[row] *= scales[i];
  }
}

// --- the plan ---

struct Job {
  kbeam::Plan& plan;
  kbeam::DeviceTensor<const float> a;
  kbeam::DeviceTensor<float> h, tau;
  int batch;
  Shape shape;
};

void plan_warps(Job& job) {
  const Shape& s = job.shape;
  const int matrices = job.batch >= 132 * kWarpMatrices ? kWarpMatrices : 1;
  const kbeam::LaunchShape launch{.grid = (job.batch + matrices - 1) / matrices,
                                  .block = 32 * matrices,
                                  .shared_bytes = matrices * kWarpFloats * 4};
  auto* kernel = s.m <= 8 ? factor_in_warp<8> : s.m <= 16 ? factor_in_warp<16> : factor_in_warp<32>;
  job.plan.launch(kernel, launch, job.a, job.h, job.tau, job.batch, s.m, s.n);
}

template <int kQ>
void plan_whole(Job& job) {
  constexpr int kC = kWholeColumns;
  const Shape& s = job.shape;
  if (s.rows > kQ * 32) {
    if constexpr (kQ * 32 < kWholeLimit) plan_whole<kQ + 1>(job);
    return;
  }
  const int warps = (s.columns + kC - 1) / kC;
  const kbeam::LaunchShape launch{.grid = job.batch,
                                  .block = 32 * warps,
                                  .shared_bytes = shared_bytes<kQ, kC, false, false>(s.columns, 1)};
  const auto whole = [&](auto* kernel) {
    job.plan.launch(kernel, launch, job.a, job.h, job.tau, nullptr, nullptr, s);
  };
  // Fewer threads leave more registers to each; the short columns do not need them.
  constexpr int kMost = (kWholeLimit + kC - 1) / kC * 32;
  if (kQ > 3 && warps <= 16)
    whole(factor_columns<kQ, kC, false, false, (kQ > 3 ? 512 : kMost), 1>);
  else
    whole(factor_columns<kQ, kC, false, false, kMost, 1>);
}

struct PanelMemory {
  kbeam::DevicePointer<float> v, t;
};

template <int kQ, bool kCluster>
void launch_panel(Job& job, const PanelMemory& memory, const Shape& s, int ranks) {
  constexpr int kC = kPanelColumns, kThreads = kPanel / kC * 32;
  kbeam::LaunchShape launch{.grid = job.batch * ranks,
                            .block = (s.columns + kC - 1) / kC * 32,
                            .shared_bytes = shared_bytes<kQ, kC, kCluster, true>(s.columns, ranks)};
  if (kCluster) launch.cluster = {ranks, 1};
  job.plan.launch(factor_columns < kQ, kC, kCluster, true, kThreads, kThreads <= 256 ? 2 : 1 >,
                  launch, job.h, job.h, job.tau, memory.v, memory.t, s);
}

void plan_panel(Job& job, const PanelMemory& memory, const Shape& s) {
  if (s.rows > kSliceRows) {
    const int ranks = (s.rows + kSliceRows - 1) / kSliceRows;
    launch_panel<kSliceRows / 32, true>(job, memory, s, ranks);
  } else if (s.rows <= 64) {
    launch_panel<2, false>(job, memory, s, 1);
  } else if (s.rows <= 128) {
    launch_panel<4, false>(job, memory, s, 1);
  } else if (s.rows <= 256) {
    launch_panel<8, false>(job, memory, s, 1);
  } else if (s.rows <= 384) {
    launch_panel<12, false>(job, memory, s, 1);
  } else {
    launch_panel<16, false>(job, memory, s, 1);
  }
}

// H -= V T'(V'H) right of the panel.
void plan_update(Job& job, const PanelMemory& memory, const Shape& s, kbeam::DevicePointer<float> w,
                 kbeam::DevicePointer<float> tw) {
  const std::int64_t m = s.m, column = s.first + s.columns, rest = s.n - column;
  const auto trailing = job.h + (column * m + s.first);
  const auto v = memory.v + s.first;
  job.plan.gemm({.transpose_a = true,
                 .m = s.reflectors,
                 .n = rest,
                 .k = s.rows,
                 .batch = job.batch,
                 .a = v.place,
                 .b = trailing.place,
                 .c = w.place,
                 .lda = m,
                 .ldb = m,
                 .ldc = kPanel,
                 .stride_a = m * kPanel,
                 .stride_b = m * s.n,
                 .stride_c = std::int64_t{kPanel} * s.n});
  job.plan.gemm({.transpose_a = true,
                 .m = s.reflectors,
                 .n = rest,
                 .k = s.reflectors,
                 .batch = job.batch,
                 .a = memory.t.place,
                 .b = w.place,
                 .c = tw.place,
                 .lda = kPanel,
                 .ldb = kPanel,
                 .ldc = kPanel,
                 .stride_a = kPanel * kPanel,
                 .stride_b = std::int64_t{kPanel} * s.n,
                 .stride_c = std::int64_t{kPanel} * s.n});
  job.plan.gemm({.m = s.rows,
                 .n = rest,
                 .k = s.reflectors,
                 .batch = job.batch,
                 .alpha = -1,
                 .beta = 1,
                 .a = v.place,
                 .b = tw.place,
                 .c = trailing.place,
                 .lda = m,
                 .ldb = kPanel,
                 .ldc = m,
                 .stride_a = m * kPanel,
                 .stride_b = std::int64_t{kPanel} * s.n,
                 .stride_c = m * s.n});
}

void plan_blocked(Job& job) {
  const Shape& whole = job.shape;
  const std::int64_t batch = job.batch, columns = batch * whole.n;
  const auto backs = job.plan.scratch<float>(columns);
  const PanelMemory memory{job.plan.scratch<float>(batch * whole.m * kPanel),
                           job.plan.scratch<float>(batch * kPanel * kPanel)};
  const auto w = job.plan.scratch<float>(columns * kPanel);
  const auto tw = job.plan.scratch<float>(columns * kPanel);
  job.plan.launch(copy_scaled,
                  {.grid = (columns + kCopyWarps - 1) / kCopyWarps, .block = 32 * kCopyWarps},
                  job.a, job.h, backs, whole.m, whole.n, columns);
  const int k = std::min(whole.m, whole.n);
  for (int first = 0; first < k; first += kPanel) {
    Shape s = whole;
    s.first = first;
    s.rows = whole.m - first;
    s.columns = std::min(kPanel, k - first);
    s.reflectors = s.columns;
    plan_panel(job, memory, s);
    if (first + s.columns < whole.n) plan_update(job, memory, s, w, tw);
  }
  job.plan.launch(unscale, {.grid = (columns + 255) / 256, .block = 256}, job.h, backs, whole.m,
                  whole.n, columns);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  Job job{plan, args.input<float>("A"), args.output<float>("H"), args.output<float>("tau"), 0, {}};
  job.batch = static_cast<int>(job.a.dim(0));
  const int m = static_cast<int>(job.a.dim(1)), n = static_cast<int>(job.a.dim(2));
  const int k = std::min(m, n);
  job.shape = {m, n, 0, m, n, k, k};
  if (std::max(m, n) <= kWarpLimit)
    plan_warps(job);
  else if (std::max(m, n) <= kWholeLimit)
    plan_whole<1>(job);
  else
    plan_blocked(job);
}
