// Left-looking Householder QR of matrices up to 1024 rows: a block holds one matrix's panel of 32
// columns in registers, applies all earlier block reflectors to it on tensor cores (FP16 halves,
// three products), factors it, and goes on. Nothing right of the panel is ever written.
#include <cuda_fp16.h>
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

namespace {

constexpr int kPanel = 32;
constexpr int kGroups = 4;  // of 16 rows, that a warp holds while it updates
constexpr int kTriangle = kPanel * kPanel;

// A sum of squares below this may have lost something to underflow; then the column is scaled
// again and summed anew.
constexpr float kTinySquare = 0x1p-90f;
// Brings typical elements of V near 1, so that their low halves keep their bits.
constexpr float kRaise = 0x1p5f;

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
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
// What this block has written so far may be read by block `rank`, which waits at its own `barrier`.
__device__ __forceinline__ void tell_peer(std::uint64_t* barrier, int rank) {
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(shared_address(barrier)), "r"(rank));
  __threadfence();
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there)
               : "memory");
}
// Waits for the four warps that share a tile of columns.
__device__ __forceinline__ void half_barrier(int half) {
  asm volatile("bar.sync %0, 128;" ::"r"(half + 1) : "memory");
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
__device__ __forceinline__ std::uint32_t to_halves(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
__device__ __forceinline__ float2 from_halves(std::uint32_t pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}
__device__ __forceinline__ void load_matrices(std::uint32_t (&b)[4], const char* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void load_transposed(std::uint32_t (&b)[4], const char* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(shared_address(row))
               : "memory");
}
// c += a b, 16 x 8 x 16. Kept in the order of the source, which interleaves independent sums.
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
      " {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// c += a b, 16 x 8 x 8, of numbers cut to 10 bits.
__device__ __forceinline__ void multiply_add_tf32(float (&c)[4], const std::uint32_t (&a)[4],
                                                  std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
      " {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void copy_async(char* to, const char* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
__device__ __forceinline__ void copy_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}
// Brings whole 16 bytes to L2.
__device__ __forceinline__ void prefetch(const void* p, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(p), "r"(bytes));
}
// Keeps the compiler from computing x again where it is short of registers.
__device__ __forceinline__ int keep(int x) {
  asm volatile("" : "+r"(x));
  return x;
}
// --- end of instructions ---

// Two numbers as FP16 halves: x = high + low to 22 bits.
__device__ __forceinline__ void split(float first, float second, std::uint32_t& high,
                                      std::uint32_t& low) {
  high = to_halves(first, second);
  const float2 kept = from_halves(high);
  low = to_halves(first - kept.x, second - kept.y);
}
// x = high + low to 21 bits; the tensor core cuts both to 11.
__device__ __forceinline__ void split_tf32(float x, std::uint32_t& high, std::uint32_t& low) {
  high = __float_as_uint(x) & 0xffffe000u;
  low = __float_as_uint(x - __uint_as_float(high));
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

// v = (1, gamma x); H = I - tau v v' takes (alpha, x) to (beta, 0); head = 1 / gamma.
struct Reflector {
  float beta, tau, gamma, head;
};
__device__ __forceinline__ Reflector make_reflector(float alpha, float square) {
  const float sum = fmaf(alpha, alpha, square);
  float r = reciprocal_root(sum);
  float norm = sum * r;
  norm = fmaf(0.5f * r, fmaf(-norm, norm, sum), norm);
  r = fmaf(r, fmaf(-norm, r, 1.0f), r);
  const float head = fabsf(alpha) + norm;
  return {-copysignf(norm, alpha), head * r, copysignf(reciprocal(head), alpha),
          copysignf(head, alpha)};
}

struct Shape {
  int m, n, taus;
};

// Four rows of a column, of which `there` are there; kAligned: all four, on 16 bytes.
template <bool kAligned>
__device__ __forceinline__ float4 load_four(const float* from, int there) {
  if constexpr (kAligned) return __ldcs(reinterpret_cast<const float4*>(from));
  float4 x = make_float4(__ldcs(from), 0, 0, 0);
  if (there > 1) x.y = __ldcs(from + 1);
  if (there > 2) x.z = __ldcs(from + 2);
  if (there > 3) x.w = __ldcs(from + 3);
  return x;
}
template <bool kAligned>
__device__ __forceinline__ void store_four(float* to, int there, float4 x) {
  if constexpr (kAligned) {
    __stcs(reinterpret_cast<float4*>(to), x);
  } else {
    __stcs(to, x.x);
    if (there > 1) __stcs(to + 1, x.y);
    if (there > 2) __stcs(to + 2, x.z);
    if (there > 3) __stcs(to + 3, x.w);
  }
}

// A block of kWarps warps and the panel of 64 kWarps rows that it holds. kAligned: columns are
// multiples of 16 bytes.
template <int kWarps, bool kAligned>
struct Block {
  static constexpr int kRows = 16 * kGroups * kWarps, kThreads = 32 * kWarps;
  static constexpr int kColumnsEach = kPanel / kWarps;  // of a warp while it factors
  static constexpr int kSlot = kRows + 16;  // floats; 16 keeps quarter warps off each other's banks
  static constexpr int kImageBytes =
      kRows * kPanel * 4;  // of V's halves: [8 rows][high, low][column][row]

  // What the warps of a block share.
  struct Shared {
    char* image;          // V of the block reflector that is being applied; the same place as
    float* slots;         // the panel by columns, while it is factored
    float4* sums;         // [warp][tile][lane]: parts of W, as accumulators
    float4* w;            // [tile][lane]: W
    uint2* tw;            // [high, low][tile][step][lane]: T'W, as left operands
    float2* triangle;     // T, as right operands: [column tile][row tile][lane]
    float* gram;          // v_i'v_l in column l, row i; the place of `sums`
    float4* scalars;      // [column]: gamma, tau, head, scale
    float* backs;         // [column]: what undoes its scale
    unsigned* most;       // [column]: bits of the largest magnitude
    std::uint64_t* bars;  // [column]: it is published
    std::uint64_t* scalar_bars;  // [column]: its reflector is there
    std::uint64_t* peer;         // the other block of a pair has finished a panel
  };
  static constexpr int kSumBytes = kWarps * kTriangle * 4;
  static constexpr int kSharedBytes =
      kPanel * kSlot * 4 + kSumBytes + 3 * kTriangle * 4 + kPanel * (16 + 2 * 4 + 2 * 8) + 16;

  static __device__ __forceinline__ Shared carve(float4* memory) {
    Shared s;
    s.image = reinterpret_cast<char*>(memory);
    s.slots = reinterpret_cast<float*>(memory);
    s.sums = memory + kPanel * kSlot / 4;
    s.gram = reinterpret_cast<float*>(s.sums);
    s.w = s.sums + kSumBytes / 16;
    s.tw = reinterpret_cast<uint2*>(s.w + kTriangle / 4);
    s.triangle = reinterpret_cast<float2*>(s.w + 2 * (kTriangle / 4));
    s.scalars = s.w + 3 * (kTriangle / 4);
    s.bars = reinterpret_cast<std::uint64_t*>(s.scalars + kPanel);
    s.scalar_bars = s.bars + kPanel;
    s.backs = reinterpret_cast<float*>(s.scalar_bars + kPanel);
    s.most = reinterpret_cast<unsigned*>(s.backs + kPanel);
    s.peer = reinterpret_cast<std::uint64_t*>(s.most + kPanel);
    return s;
  }

  // --- the update of a panel ---

  // Rows 16 G .. 16 G + 15 belong to warp G % kWarps. Lane (g, t) has rows 16 G + 4 t .. + 3 of
  // columns 16 tile + g and + 8: with the rows in the order 4 t + (0, 1), 4 t + (2, 3) for the left
  // and the right half of a tensor-core tile these are its accumulators and its left operands.
  struct Strip {
    float a[2][kGroups][2][4];  // [tile][group][column half][row]
  };

  // Both places are of group `warp` and this lane.
  static __device__ __forceinline__ void fetch_group(char* to, const char* from, int i,
                                                     bool wanted) {
    if (wanted) {
#pragma unroll
      for (int k = 0; k < 4; ++k)
        copy_async(to + i * kWarps * 2048 + k * 512, from + i * kWarps * 2048 + k * 512);
    }
    copy_commit();
  }

  static __device__ __forceinline__ void fetch(const Shared& s, const char* image, int warp,
                                               int lane, int block = 0) {
    const int place = warp * 2048 + lane * 16;
#pragma unroll
    for (int i = 0; i < kGroups; ++i)
      fetch_group(s.image + place, image + place, i, warp + i * kWarps >= 2 * block);
  }

  static __device__ __forceinline__ void prefetch_block(const char* images, int block) {
    prefetch(images + block * kImageBytes + block * (2 * 2048), kImageBytes - block * (2 * 2048));
  }

  static __device__ __forceinline__ void split_group(const Strip& strip, int tile, int i,
                                                     std::uint32_t (&high)[4],
                                                     std::uint32_t (&low)[4]) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float(&x)[4] = strip.a[tile][i][half];
      split(x[0], x[1], high[half], low[half]);
      split(x[2], x[3], high[2 + half], low[2 + half]);
    }
  }

  template <int kTile, int kIndex>
  static __device__ __forceinline__ void project_group(const Strip& strip, const char* lane_image,
                                                       int first_group, int warp,
                                                       float (&part)[4][4]) {
    if constexpr (kTile == 0) {
      copy_wait<kGroups - kIndex>();  // T is the last
      __syncwarp();
    }
    if (warp + kIndex * kWarps < first_group) return;
    std::uint32_t high[4], low[4], b[4][4];
#pragma unroll
    for (int j = 0; j < 4; ++j) load_matrices(b[j], lane_image + kIndex * kWarps * 2048 + j * 128);
    split_group(strip, kTile, kIndex, high, low);
    const auto add = [&](const std::uint32_t(&a)[4], int of_b) {
#pragma unroll
      for (int j = 0; j < 4; ++j) multiply_add(part[j], a, b[j][of_b], b[j][of_b + 1]);
    };
    add(low, 0);
    add(high, 2);
    add(high, 0);
  }

  // One tile of columns at a time, which leaves registers for four sums in flight.
  template <int kTile>
  static __device__ __forceinline__ void project_tile(const Shared& s, const Strip& strip,
                                                      const char* lane_image, int first_group,
                                                      int warp, int lane) {
    float part[4][4] = {};
    project_group<kTile, 0>(strip, lane_image, first_group, warp, part);
    project_group<kTile, 1>(strip, lane_image, first_group, warp, part);
    project_group<kTile, 2>(strip, lane_image, first_group, warp, part);
    project_group<kTile, 3>(strip, lane_image, first_group, warp, part);
    put_part(s, kTile, part, warp, lane);
  }

  static __device__ __forceinline__ void put_part(const Shared& s, int tile,
                                                  const float (&part)[4][4], int warp, int lane) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float(&c)[4] = part[j];
      s.sums[(warp * 8 + tile * 4 + j) * 32 + lane] = make_float4(c[0], c[1], c[2], c[3]);
    }
  }

  // The sum over all warps of their parts; warp w < 8 gets tile w of it as an accumulator.
  static __device__ __forceinline__ float4 sum_parts(const Shared& s, int warp, int lane) {
    __syncthreads();  // all parts are there
    if (warp >= 8) return {};
    float4 sum = s.sums[warp * 32 + lane];
#pragma unroll
    for (int i = 1; i < kWarps; ++i) {
      const float4 one = s.sums[(i * 8 + warp) * 32 + lane];
      sum.x += one.x, sum.y += one.y, sum.z += one.z, sum.w += one.w;
    }
    return sum;
  }

  // Where more warps than multiply wait, racecheck loses the order of a barrier of some of them and
  // the next of all.
  static __device__ __forceinline__ void columns_barrier(int tile) {
    if constexpr (kWarps == 8)
      half_barrier(tile);
    else
      __syncthreads();
  }

  // A -= V T'(V'A) for the panel in the registers of the block. Fetches the next V behind itself.
  static __device__ __forceinline__ void apply_block(const Shared& s, Strip& strip,
                                                     const char* triangle, const char* next_image,
                                                     int block, int next, int warp, int lane) {
    const int tile = warp / 4, column = warp % 4;  // of W, that this warp multiplies with T
    const int first_group = 2 * block;
    if (threadIdx.x < kTriangle / 4)
      copy_async(reinterpret_cast<char*>(s.triangle) + threadIdx.x * 16,
                 triangle + threadIdx.x * 16);
    copy_commit();

    {
      const char* lane_image =
          s.image + keep(warp * 2048 + lane / 8 % 2 * 1024 + lane / 16 * 512 + lane % 8 * 16);
      project_tile<0>(s, strip, lane_image, first_group, warp, lane);
      project_tile<1>(s, strip, lane_image, first_group, warp, lane);
      copy_wait<0>();
      const float4 sum = sum_parts(s, warp, lane);
      if (warp < 8) s.w[warp * 32 + lane] = sum;
    }
    columns_barrier(tile);  // W of my columns is there
    if (warp < 8) {
      float parts[3][4] = {};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (k > column) break;
        const float4 w = s.w[(tile * 4 + k) * 32 + lane];
        const float2 t = s.triangle[(column * 4 + k) * 32 + lane];
        std::uint32_t high[4], low[4], t_high[2], t_low[2];
        split_tf32(w.x, high[0], low[0]);
        split_tf32(w.z, high[1], low[1]);
        split_tf32(w.y, high[2], low[2]);
        split_tf32(w.w, high[3], low[3]);
        split_tf32(t.x, t_high[0], t_low[0]);
        split_tf32(t.y, t_high[1], t_low[1]);
        multiply_add_tf32(parts[0], low, t_high[0], t_high[1]);
        multiply_add_tf32(parts[1], high, t_low[0], t_low[1]);
        multiply_add_tf32(parts[2], high, t_high[0], t_high[1]);
      }
      float product[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) product[e] = parts[0][e] + parts[1][e] + parts[2][e];
      uint2 high, low;
      split(product[0], product[1], high.x, low.x);
      split(product[2], product[3], high.y, low.y);
      uint2* to = s.tw + ((tile * 2 + column / 2) * 32 + lane) * 2 + column % 2;
      to[0] = high;
      to[4 * 32 * 2] = low;
    }
    __syncthreads();  // T'W is there

    const char* lane_image =
        s.image + keep(warp * 2048 + lane / 16 * 512 + (lane / 8 % 2 * 8 + lane % 8) * 16);
    update_tile<0>(s, strip, lane_image, first_group, warp, lane, [](int) {});
    const int place = keep(warp * 2048 + lane * 16);
    update_tile<1>(s, strip, lane_image, first_group, warp, lane, [&](int i) {
      __syncwarp();  // all lanes have read the group: its place is free
      fetch_group(s.image + place, next_image + place, i, warp + i * kWarps >= 2 * next);
    });
  }

  template <int kTile, typename After>
  static __device__ __forceinline__ void update_tile(const Shared& s, Strip& strip,
                                                     const char* lane_image, int first_group,
                                                     int warp, int lane, After after) {
    std::uint32_t high[2][4], low[2][4];  // [step]
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      const uint4* from = reinterpret_cast<const uint4*>(s.tw) + (kTile * 2 + step) * 32 + lane;
      const uint4 h = from[0], l = from[4 * 32];
      high[step][0] = h.x, high[step][1] = h.y, high[step][2] = h.z, high[step][3] = h.w;
      low[step][0] = l.x, low[step][1] = l.y, low[step][2] = l.z, low[step][3] = l.w;
    }
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (warp + i * kWarps >= first_group) {
        std::uint32_t b[2][2][4];  // [half][step]
#pragma unroll
        for (int step = 0; step < 2; ++step)
#pragma unroll
          for (int half = 0; half < 2; ++half)
            load_transposed(b[half][step],
                            lane_image + (i * kWarps * 2 + half) * 1024 + step * 256);
        // Summed apart from A: the accumulation cuts, and A is the larger.
        float small[2][4] = {}, large[2][4] = {};
        const auto add = [&](float(&c)[2][4], const std::uint32_t(&a)[4], int step, int of_b) {
#pragma unroll
          for (int half = 0; half < 2; ++half)
            multiply_add(c[half], a, b[half][step][of_b], b[half][step][of_b + 1]);
        };
        add(small, low[0], 0, 0);
        add(large, high[0], 0, 0);
        add(small, high[0], 0, 2);
        add(large, high[1], 1, 0);
        add(small, low[1], 1, 0);
        add(small, high[1], 1, 2);
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            strip.a[kTile][i][e / 2][half * 2 + e % 2] -= small[half][e] + large[half][e];
      }
      after(i);
    }
  }

  // --- the factorization of a panel ---

  // Columns kColumnsEach warp .. of the panel in registers: v[k][4 i + e] is row
  // first + 128 i + 4 lane + e. A pivot column is published before it is reflected, then the
  // numbers of its reflector; the next one is brought up to date first.
  template <int kHeight>
  struct Columns {
    static constexpr int kQuads = kHeight / 128, kElements = 4 * kQuads, kC = kColumnsEach;

    Shared s;
    float v[kC][kElements], x[kElements];
    float dots[kC + 1], top[kC];  // x'v, and at last x'x; the pivot's row
    int warp, lane, parity;
    int first;   // row of the window
    int offset;  // row of the panel's first pivot in it, one of the first 128

    __device__ __forceinline__ float4 get(int column, int i) const {
      return *reinterpret_cast<const float4*>(s.slots + column * kSlot + first + 128 * i +
                                              4 * lane);
    }
    __device__ __forceinline__ void put(int column, int i, float4 x) const {
      *reinterpret_cast<float4*>(s.slots + column * kSlot + first + 128 * i + 4 * lane) = x;
    }
    // The column's element in the row of pivot j, whose place among its warp's columns is c.
    __device__ __forceinline__ float pick(const float (&column)[kElements], int j, int c) const {
      float mine = column[c % 4];
      if (kC == 2) mine = j & 2 ? column[2 + c] : column[c];
      return __shfl_sync(~0u, mine, (offset + j) / 4);
    }
    __device__ __forceinline__ void take_tail(int k, int j) {
#pragma unroll
      for (int q = 0; q < kElements; ++q)
        x[q] = q < 4 && 4 * lane + q <= offset + j ? 0.0f : v[k][q];
    }
    __device__ __forceinline__ void publish(int k, int j) const {
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        float y[4];
#pragma unroll
        for (int e = 0; e < 4; ++e)
          y[e] = i == 0 && 4 * lane + e <= offset + j ? 0.0f : v[k][4 * i + e];
        put(j, i, make_float4(y[0], y[1], y[2], y[3]));
      }
      barrier_arrive(&s.bars[j]);
    }
    // dots[k] for k >= from; kNorm: x'x too.
    template <int kFrom, bool kNorm>
    __device__ __forceinline__ void form_dots() {
#pragma unroll
      for (int k = kFrom; k < kC + (kNorm ? 1 : 0); ++k) {
        float part[2] = {};
#pragma unroll
        for (int q = 0; q < kElements; ++q)
          part[q % 2] = fmaf(x[q], k < kC ? v[k < kC ? k : 0][q] : x[q], part[q % 2]);
        dots[k] = part[0] + part[1];
      }
#pragma unroll
      for (int level = 16; level > 0; level >>= 1)
#pragma unroll
        for (int k = kFrom; k < kC + (kNorm ? 1 : 0); ++k)
          dots[k] += __shfl_xor_sync(~0u, dots[k], level);
    }
    // r: gamma, tau, head, scale.
    __device__ __forceinline__ void update(int k, int j, const float4& r) {
      const float u = -r.x * (r.y * fmaf(r.x, dots[k], top[k]));
#pragma unroll
      for (int q = 0; q < kElements; ++q) v[k][q] = fmaf(u, x[q], v[k][q]);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (4 * lane + e == offset + j) v[k][e] = fmaf(u, r.z, v[k][e]);
    }

    // Column j = owner kC + kColumn of an earlier warp meets mine.
    template <int kColumn>
    __device__ __forceinline__ void follow(int j, bool next_is_mine) {
#pragma unroll
      for (int k = 0; k < kC; ++k) top[k] = pick(v[k], j, kColumn);
      barrier_wait<false>(&s.bars[j], parity);
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const float4 quad = get(j, i);
        x[4 * i] = quad.x, x[4 * i + 1] = quad.y, x[4 * i + 2] = quad.z, x[4 * i + 3] = quad.w;
      }
      form_dots<0, false>();
      barrier_wait<false>(&s.scalar_bars[j], parity);
      const float4 r = s.scalars[j];
      if (r.w != 1) {
#pragma unroll
        for (int q = 0; q < kElements; ++q) x[q] *= r.w;
#pragma unroll
        for (int k = 0; k < kC; ++k) dots[k] *= r.w;
      }
      update(0, j, r);
      if (kColumn == kC - 1 && next_is_mine) publish(0, j + 1);
#pragma unroll
      for (int k = 1; k < kC; ++k) update(k, j, r);
    }

    // My own column kColumn is the pivot.
    template <int kColumn>
    __device__ __forceinline__ void lead(float* tau, int taus) {
      const int j = warp * kC + kColumn;
      take_tail(kColumn, j);
#pragma unroll
      for (int k = kColumn; k < kC; ++k) top[k] = pick(v[k], j, kColumn);
      form_dots<kColumn + 1, true>();
      float alpha = top[kColumn], scale_to = 1, undo = 1;
      bool nonzero = true;
      if (dots[kC] < kTinySquare) {
        float most = 0;
#pragma unroll
        for (int q = 0; q < kElements; ++q) most = fmaxf(most, fabsf(x[q]));
#pragma unroll
        for (int level = 16; level > 0; level >>= 1)
          most = fmaxf(most, __shfl_xor_sync(~0u, most, level));
        nonzero = most != 0;
        const Scale scale = scale_for(fmaxf(most, fabsf(alpha)));
        alpha *= scale.to;
        scale_to = scale.to, undo = scale.back;
#pragma unroll
        for (int q = 0; q < kElements; ++q) x[q] *= scale.to;
        form_dots<kColumn + 1, true>();
      }
      Reflector r = make_reflector(alpha, dots[kC]);
      if (!nonzero) r = {alpha, 0, 0, 0};
      const float4 numbers = make_float4(r.gamma, r.tau, r.head, scale_to);
      if (lane == 0) {
        s.scalars[j] = numbers;
        if (j < taus) tau[j] = r.tau;
      }
      barrier_arrive(&s.scalar_bars[j]);
#pragma unroll
      for (int k = kColumn + 1; k < kC; ++k) {
        update(k, j, numbers);
        if (k == kColumn + 1) publish(k, j + 1);
      }
#pragma unroll
      for (int q = 0; q < kElements; ++q) {
        const int below = 4 * lane + q - offset - j;
        if (q >= 4 || below > 0) v[kColumn][q] = r.gamma * x[q];
        if (q < 4 && below == 0) v[kColumn][q] = r.beta * undo;
      }
    }

    __device__ __forceinline__ void run(float* tau, int taus) {
#pragma unroll
      for (int k = 0; k < kC; ++k)
#pragma unroll
        for (int i = 0; i < kQuads; ++i) {
          float4 quad = get(warp * kC + k, i);
          if (i == 0 && 4 * lane < offset) quad = make_float4(0, 0, 0, 0);
          v[k][4 * i] = quad.x, v[k][4 * i + 1] = quad.y;
          v[k][4 * i + 2] = quad.z, v[k][4 * i + 3] = quad.w;
        }
      if (warp == 0) publish(0, 0);
#pragma unroll 1
      for (int owner = 0; owner < warp; ++owner) {
        follow<0>(owner * kC, false);
        follow<1>(owner * kC + 1, owner == warp - 1);
        if constexpr (kC == 4) {
          follow<2>(owner * kC + 2, false);
          follow<3>(owner * kC + 3, owner == warp - 1);
        }
      }
      lead<0>(tau, taus);
      lead<1>(tau, taus);
      if constexpr (kC == 4) {
        lead<2>(tau, taus);
        lead<3>(tau, taus);
      }
      __syncthreads();  // every pivot has been read
      // Who arrives again has to have waited, says synccheck; these phases are over.
#pragma unroll
      for (int k = 0; k < kC; ++k) {
        barrier_wait<false>(&s.bars[warp * kC + k], parity);
        barrier_wait<false>(&s.scalar_bars[warp * kC + k], parity);
      }
    }

    // My columns go to H, and as raised V, a unit lower trapezium, to the slots.
    __device__ __forceinline__ void finish(float* h, const Shape& shape, int panel) const {
#pragma unroll
      for (int k = 0; k < kC; ++k) {
        const int column = warp * kC + k, pivot = offset + column;
        const float back = s.backs[column];
        float* to = h + std::int64_t{panel * kPanel + column} * shape.m + first + 4 * lane;
        const bool wanted = panel * kPanel + column < shape.n;
#pragma unroll
        for (int i = 0; i < kQuads; ++i) {
          float out[4], low[4];
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int below = 128 * i + 4 * lane + e - pivot;
            const float y = v[k][4 * i + e];
            out[e] = i > 0 || below > 0 ? y : y * back;
            low[e] = i > 0 || below > 0 ? kRaise * y : below == 0 ? kRaise : 0.0f;
          }
          put(column, i, make_float4(low[0], low[1], low[2], low[3]));
          const int row = first + 128 * i + 4 * lane;
          if (wanted && row < shape.m && (i > 0 || 4 * lane >= offset))
            store_four<kAligned>(to + 128 * i, shape.m - row,
                                 make_float4(out[0], out[1], out[2], out[3]));
        }
      }
    }
  };

  template <int kHeight>
  static __device__ __forceinline__ void factor_panel(const Shared& s, float* h, float* tau,
                                                      const Shape& shape, int panel, int parity,
                                                      int warp, int lane) {
    if constexpr (kHeight > 128)
      if (kRows - panel * kPanel <= kHeight - 128) {
        factor_panel<kHeight - 128>(s, h, tau, shape, panel, parity, warp, lane);
        return;
      }
    Columns<kHeight> columns;
    columns.s = s;
    columns.warp = warp, columns.lane = lane, columns.parity = parity;
    columns.first = kRows - kHeight;
    columns.offset = panel * kPanel - columns.first;
    columns.run(tau + panel * kPanel, shape.taus - panel * kPanel);
    columns.finish(h, shape, panel);
  }

  // From V in the slots: its halves to `image`, and V'V of the whole block as sums by tiles.
  static __device__ __forceinline__ float4 pack_panel(const Shared& s, char* image, int panel,
                                                      int warp, int lane) {
    const int g = lane / 4, t = lane % 4;
    float part[2][4][4] = {};
#pragma unroll 1
    for (int i = 0; i < kGroups; ++i) {
      const int group = warp + i * kWarps;
      if (group < 2 * panel) continue;
      std::uint32_t high[4][2], low[4][2];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const float4 x =
            *reinterpret_cast<const float4*>(s.slots + (8 * j + g) * kSlot + group * 16 + 4 * t);
        split(x.x, x.y, high[j][0], low[j][0]);
        split(x.z, x.w, high[j][1], low[j][1]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          char* to = image + (group * 2 + half) * 1024 + (8 * j + g) * 16 + 4 * t;
          *reinterpret_cast<std::uint32_t*>(to) = high[j][half];
          *reinterpret_cast<std::uint32_t*>(to + 512) = low[j][half];
        }
      }
#pragma unroll
      for (int tile = 0; tile < 2; ++tile) {
        const std::uint32_t a_high[4] = {high[2 * tile][0], high[2 * tile + 1][0],
                                         high[2 * tile][1], high[2 * tile + 1][1]};
        const std::uint32_t a_low[4] = {low[2 * tile][0], low[2 * tile + 1][0], low[2 * tile][1],
                                        low[2 * tile + 1][1]};
#pragma unroll
        for (int j = 2 * tile; j < 4; ++j) {
          multiply_add(part[tile][j], a_low, high[j][0], high[j][1]);
          multiply_add(part[tile][j], a_high, low[j][0], low[j][1]);
          multiply_add(part[tile][j], a_high, high[j][0], high[j][1]);
        }
      }
    }
    put_part(s, 0, part[0], warp, lane);
    put_part(s, 1, part[1], warp, lane);
    return sum_parts(s, warp, lane);
  }

  // T of the panel from V'V, for V and W that are raised: a lane a row.
  static __device__ __forceinline__ void make_triangle(const Shared& s, float* triangle, int lane) {
    float t[kPanel];
#pragma unroll
    for (int l = 0; l < kPanel; ++l) {
      float sum[4] = {};
#pragma unroll
      for (int i = 0; i < l; ++i) sum[i % 4] = fmaf(t[i], s.gram[l * kPanel + i], sum[i % 4]);
      const float tau = s.scalars[l].y;
      const float value = -tau * ((sum[0] + sum[1]) + (sum[2] + sum[3]));
      t[l] = l < lane ? 0.0f : l == lane ? tau : value;
    }
    constexpr float kLower = 1 / (kRaise * kRaise);
    float* to = triangle + (lane / 8 * 32 + lane % 8 / 2) * 2 + lane % 2;
#pragma unroll
    for (int l = 0; l < kPanel; ++l) to[(l / 8 * 4 * 32 + l % 8 * 4) * 2] = t[l] * kLower;
  }
};

__device__ __forceinline__ unsigned below(int count) {
  return count >= 32 ? ~0u : (1u << count) - 1;
}
__device__ __forceinline__ int next_of(unsigned set) {
  return set == 0 ? 0 : __ffs(static_cast<int>(set)) - 1;
}

// A matrix a block, or, for kPair, a cluster of two, whose blocks take the panels by turns: while
// one factors, the other applies what there is to the panel after.
template <int kWarps, bool kPair, bool kAligned>
__global__ void __launch_bounds__(32 * kWarps, 16 / kWarps)
    factor_matrices(const float* a, float* h, float* tau, char* images, float* triangles,
                    Shape shape) {
  using B = Block<kWarps, kAligned>;
  extern __shared__ float4 shared_memory[];
  const auto s = B::carve(shared_memory);
  const int warp = __shfl_sync(~0u, threadIdx.x / 32, 0);  // known to be the same in all lanes
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const std::int64_t matrix = kPair ? blockIdx.x / 2 : blockIdx.x;
  const int rank = kPair ? cluster_rank() : 0;
  const int panels = (shape.n + kPanel - 1) / kPanel;
  const int blocks = (shape.taus + kPanel - 1) / kPanel;
  a += matrix * shape.m * shape.n;
  h += matrix * shape.m * shape.n;
  tau += matrix * shape.taus;
  images += matrix * blocks * B::kImageBytes;
  triangles += matrix * blocks * kTriangle;

  if (threadIdx.x < kPanel) {
    barrier_init(&s.bars[threadIdx.x], 32);
    barrier_init(&s.scalar_bars[threadIdx.x], 32);
    s.most[threadIdx.x] = 0;
  }
  if (kPair && threadIdx.x == 0) barrier_init(s.peer, 1);
  if constexpr (kPair)
    cluster_sync();
  else
    __syncthreads();

  int waits = 0, factored = 0;  // of this block
  unsigned present = 0;         // the block reflectors that are no identity
  int unfinished = -1;          // that has no T yet
  for (int panel = rank; panel < panels; panel += kPair ? 2 : 1) {
    typename B::Strip strip;
    // The last block reflector may be the other block's work of this moment.
    const int late = kPair && panel <= blocks ? panel - 1 : blocks;
    unsigned rest = kPair ? below(min(panel, blocks)) : present;
    int block = next_of(rest);
    if (rest != 0 && block != late) B::fetch(s, images + block * B::kImageBytes, warp, lane, block);
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int column = panel * kPanel + tile * 16 + half * 8 + g;
        const float* from = a + std::int64_t{column} * shape.m;
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
          const int row = (warp + i * kWarps) * 16 + 4 * t;
          float4 x = make_float4(0, 0, 0, 0);
          if (column < shape.n && row < shape.m) x = load_four<kAligned>(from + row, shape.m - row);
          float(&to)[4] = strip.a[tile][i][half];
          to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
        }
      }
    if (!kPair && unfinished >= 0 && warp == 0)
      B::make_triangle(s, triangles + unfinished * kTriangle, lane);
    unfinished = -1;

    // Powers of two that bring the largest element of every column to 8 .. 16.
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        unsigned most = 0;
#pragma unroll
        for (int i = 0; i < kGroups; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e)
            most = max(most, __float_as_uint(strip.a[tile][i][half][e]) & 0x7fffffffu);
        most = max(most, __shfl_xor_sync(~0u, most, 1));
        most = max(most, __shfl_xor_sync(~0u, most, 2));
        if (t == 0) atomicMax(&s.most[tile * 16 + half * 8 + g], most);
      }
    __syncthreads();  // the maxima are there, and T of the panel before
    // Zero columns stay zero under every reflection, and their own is the identity.
    const bool zero = !kPair && __ballot_sync(~0u, s.most[lane] != 0) == 0;
    if (zero) rest = 0;
#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float most = __uint_as_float(s.most[tile * 16 + half * 8 + g]);
        Scale scale{1, 1};
        if (most > 0 && most <= 0x1.fffffep127f) {
          scale = scale_for(most);
          if (scale.to <= 0x1p123f && scale.back <= 0x1p126f)
            scale = {scale.to * 8, scale.back / 8};
        }
        if (warp == 0 && t == 0) s.backs[tile * 16 + half * 8 + g] = scale.back;
#pragma unroll
        for (int i = 0; i < kGroups; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e) strip.a[tile][i][half][e] *= scale.to;
      }

    while (rest != 0) {
      rest &= rest - 1;
      const int next = next_of(rest);
      if (kPair && block == late) {
        barrier_wait<true>(s.peer, waits++ % 2);
        B::fetch(s, images + block * B::kImageBytes, warp, lane, block);
      }
      const unsigned after = rest & (rest - 1);  // what comes after the next
      if (after != 0 && next_of(after) != late && threadIdx.x == 0)
        B::prefetch_block(images, next_of(after));
      B::apply_block(s, strip, reinterpret_cast<const char*>(triangles + block * kTriangle),
                     images + next * B::kImageBytes, block, rest == 0 || next == late ? 64 : next,
                     warp, lane);
      block = next;
    }
    const bool factors = panel < blocks && !zero;
    __syncthreads();  // nobody reads V or the maxima any more
    if (threadIdx.x < kPanel) s.most[threadIdx.x] = 0;

#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int column = tile * 16 + half * 8 + g;
        float* to = h + std::int64_t{panel * kPanel + column} * shape.m;
        const float back = s.backs[column];
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
          const int group = warp + i * kWarps, row = group * 16 + 4 * t;
          const float(&x)[4] = strip.a[tile][i][half];
          if (factors && group >= 2 * panel)
            *reinterpret_cast<float4*>(s.slots + column * B::kSlot + row) =
                make_float4(x[0], x[1], x[2], x[3]);
          else if (panel * kPanel + column < shape.n && row < shape.m)
            store_four<kAligned>(to + row, shape.m - row,
                                 make_float4(x[0] * back, x[1] * back, x[2] * back, x[3] * back));
        }
      }
    __syncthreads();  // the panel is in the slots
    if (zero && threadIdx.x < kPanel && panel * kPanel + threadIdx.x < shape.taus)
      tau[panel * kPanel + threadIdx.x] = 0;
    if (!factors) continue;

    // A of my next panel and the first V on their way to L2.
    if (threadIdx.x == 0) {
      const int from = (panel + (kPair ? 2 : 1)) * kPanel;
      const int columns = min(from + kPanel, shape.n) - from;
      if (columns > 0) {
        if (kAligned) prefetch(a + std::int64_t{from} * shape.m, columns * shape.m * 4);
        const unsigned all = kPair ? below(panel) : present;
        if (all != 0) B::prefetch_block(images, next_of(all));
        if ((all & (all - 1)) != 0) B::prefetch_block(images, next_of(all & (all - 1)));
      }
    }
    B::template factor_panel<B::kRows>(s, h, tau, shape, panel, factored++ % 2, warp, lane);
    if (panel + 1 >= panels) break;
    __syncthreads();  // V is in the slots

    const float4 gram = B::pack_panel(s, images + panel * B::kImageBytes, panel, warp, lane);
    __syncthreads();  // everyone has summed, and the slots are free
    if (warp < 8) {
      constexpr float kLower = 1 / (kRaise * kRaise);
      const int row = warp / 4 * 16 + g, column = warp % 4 * 8 + 2 * t;
      s.gram[column * kPanel + row] = gram.x * kLower;
      s.gram[(column + 1) * kPanel + row] = gram.y * kLower;
      s.gram[column * kPanel + row + 8] = gram.z * kLower;
      s.gram[(column + 1) * kPanel + row + 8] = gram.w * kLower;
    }
    __syncthreads();  // V'V and the halves of V are there
    present |= 1u << panel;
    unfinished = panel;
    if (kPair && warp == 0) {
      B::make_triangle(s, triangles + panel * kTriangle, lane);
      __syncwarp();
      if (lane == 0) tell_peer(s.peer, rank ^ 1);
    }
  }
  if constexpr (kPair) cluster_sync();  // the other may still tell me something
}

// --- the plan ---

template <int kWarps, bool kAligned>
void plan_matrices(kbeam::Plan& plan, kbeam::DeviceTensor<const float> a,
                   kbeam::DeviceTensor<float> h, kbeam::DeviceTensor<float> tau,
                   const Shape& shape) {
  using B = Block<kWarps, kAligned>;
  constexpr bool kPair = kWarps == 16;
  const std::int64_t batch = a.dim(0), blocks = batch * ((shape.taus + kPanel - 1) / kPanel);
  const auto images = plan.scratch<char>(blocks * B::kImageBytes);
  const auto triangles = plan.scratch<float>(blocks * kTriangle);
  plan.launch(factor_matrices<kWarps, kPair, kAligned>,
              {.grid = kPair ? 2 * batch : batch,
               .block = B::kThreads,
               .cluster = kPair ? kbeam::Extent(2, 1) : kbeam::Extent(0, 0, 0),
               .shared_bytes = B::kSharedBytes},
              a, h, tau, images, triangles, shape);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H"), tau = args.output<float>("tau");
  const int m = static_cast<int>(a.dim(1)), n = static_cast<int>(a.dim(2));
  const Shape shape{m, n, std::min(m, n)};
  const bool aligned = m % 4 == 0;
  if (m > Block<16, true>::kRows)
    plan.not_supported("more than 1024 rows");
  else if (m > Block<8, true>::kRows)
    (aligned ? plan_matrices<16, true> : plan_matrices<16, false>)(plan, a, h, tau, shape);
  else
    (aligned ? plan_matrices<8, true> : plan_matrices<8, false>)(plan, a, h, tau, shape);
}
