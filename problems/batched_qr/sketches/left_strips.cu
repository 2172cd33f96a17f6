// Left-looking Householder QR of matrices up to 512 rows: a block holds one matrix's panel of 32
// columns in registers, applies all earlier block reflectors to it on tensor cores (FP16 halves,
// three products), factors it, and goes on. Nothing right of the panel is ever written.
#include <cuda_fp16.h>
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace {

constexpr int kPanel = 32, kRows = 512, kWarps = 8, kThreads = 32 * kWarps;
constexpr int kColumnsEach = kPanel / kWarps;  // of a warp while it factors
constexpr int kGroups = kRows / 16 / kWarps;   // groups of 16 rows a warp holds while it updates
constexpr int kSlot = kRows + 16;  // floats; 16 keeps quarter warps off each other's banks
constexpr int kImageBytes = kRows * kPanel * 4;  // of V's halves: [8 rows][high, low][column][row]
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
__device__ __forceinline__ void barrier_init(std::uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
__device__ __forceinline__ void barrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier, int parity) {
  std::uint32_t done = 0;
  while (!done)
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
        " selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
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
__device__ __forceinline__ std::uint32_t to_tf32(float x) {
  std::uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
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
// c += a b, 16 x 8 x 16.
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
      " {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// c += a b, 16 x 8 x 8, of numbers cut to 10 bits.
__device__ __forceinline__ void multiply_add_tf32(float (&c)[4], const std::uint32_t (&a)[4],
                                                  std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
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
// --- end of instructions ---

// Two numbers as FP16 halves: x = high + low to 22 bits.
__device__ __forceinline__ void split(float first, float second, std::uint32_t& high,
                                      std::uint32_t& low) {
  high = to_halves(first, second);
  const float2 kept = from_halves(high);
  low = to_halves(first - kept.x, second - kept.y);
}
__device__ __forceinline__ void split_tf32(float x, std::uint32_t& high, std::uint32_t& low) {
  high = to_tf32(x);
  low = to_tf32(x - __uint_as_float(high));
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

// What the warps of a block share.
struct Shared {
  char* image;          // V of the block reflector that is being applied; the same place as
  float* slots;         // the panel by columns, while it is factored
  float4* sums;         // [warp][tile][lane]: parts of W, as accumulators
  float4* w;            // [tile][lane]: W
  uint4* tw;            // [tile][lane]: T'W in halves, as left operands
  float* gram;          // v_i'v_l in column l, row i; the place of `sums`
  float4* scalars;      // [column]: gamma, tau, head, scale
  float* betas;         // [column]
  float* heads;         // [column]: the diagonal element before its reflection
  float* backs;         // [column]: what undoes its scale
  unsigned* most;       // [column]: bits of the largest magnitude
  std::uint64_t* bars;  // [column]: it is published
};
constexpr int kSumBytes = kWarps * kTriangle * 4;
constexpr int kSharedBytes =
    kPanel * kSlot * 4 + kSumBytes + 2 * kTriangle * 4 + kPanel * (16 + 4 * 4 + 8);

__device__ __forceinline__ Shared carve(float4* memory) {
  Shared s;
  s.image = reinterpret_cast<char*>(memory);
  s.slots = reinterpret_cast<float*>(memory);
  s.sums = memory + kPanel * kSlot / 4;
  s.gram = reinterpret_cast<float*>(s.sums);
  s.w = s.sums + kSumBytes / 16;
  s.tw = reinterpret_cast<uint4*>(s.w + kTriangle / 4);
  s.scalars = s.w + 2 * (kTriangle / 4);
  s.bars = reinterpret_cast<std::uint64_t*>(s.scalars + kPanel);
  s.betas = reinterpret_cast<float*>(s.bars + kPanel);
  s.heads = s.betas + kPanel;
  s.backs = s.heads + kPanel;
  s.most = reinterpret_cast<unsigned*>(s.backs + kPanel);
  return s;
}

// --- the update of a panel ---

// Rows 16 G .. 16 G + 15 belong to warp G % 8. Lane (g, t) has rows 16 G + 4 t .. + 3 of columns
// 16 tile + g and + 8: with the rows in the order 4 t + (0, 1), 4 t + (2, 3) for the left and the
// right half of a tensor-core tile these are its accumulators and its left operands.
struct Strip {
  float a[2][kGroups][2][4];  // [tile][group][column half][row]
};

__device__ __forceinline__ void fetch_group(const Shared& s, const char* image, int group, int lane,
                                            bool wanted) {
  if (wanted) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = group * 2048 + i * 512 + lane * 16;
      copy_async(s.image + at, image + at);
    }
  }
  copy_commit();
}

__device__ __forceinline__ void split_group(const Strip& strip, int tile, int i,
                                            std::uint32_t (&high)[4], std::uint32_t (&low)[4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float(&x)[4] = strip.a[tile][i][half];
    split(x[0], x[1], high[half], low[half]);
    split(x[2], x[3], high[2 + half], low[2 + half]);
  }
}

template <int kIndex>
__device__ __forceinline__ void project_group(const Strip& strip, const char* lane_image,
                                              int first_group, int warp, float (&part)[2][4][4]) {
  copy_wait<kGroups - 1 - kIndex>();
  __syncwarp();
  const int group = warp + kIndex * kWarps;
  if (group < first_group) return;
  std::uint32_t high[2][4], low[2][4];
  split_group(strip, 0, kIndex, high[0], low[0]);
  split_group(strip, 1, kIndex, high[1], low[1]);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    std::uint32_t b[4];
    load_matrices(b, lane_image + group * 2048 + j * 128);
#pragma unroll
    for (int tile = 0; tile < 2; ++tile) {
      multiply_add(part[tile][j], low[tile], b[0], b[1]);
      multiply_add(part[tile][j], high[tile], b[2], b[3]);
      multiply_add(part[tile][j], high[tile], b[0], b[1]);
    }
  }
}

// The sum over all warps of part [tile][j]; warp w gets its tile w as an accumulator.
__device__ __forceinline__ float4 sum_parts(const Shared& s, const float (&part)[2][4][4], int warp,
                                            int lane) {
#pragma unroll
  for (int tile = 0; tile < 2; ++tile)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float(&c)[4] = part[tile][j];
      s.sums[(warp * 8 + tile * 4 + j) * 32 + lane] = make_float4(c[0], c[1], c[2], c[3]);
    }
  __syncthreads();  // all parts are there
  float4 sum = s.sums[warp * 32 + lane];
#pragma unroll
  for (int i = 1; i < kWarps; ++i) {
    const float4 one = s.sums[(i * 8 + warp) * 32 + lane];
    sum.x += one.x, sum.y += one.y, sum.z += one.z, sum.w += one.w;
  }
  return sum;
}

// A -= V T'(V'A) for the panel in the registers of the block. Fetches the next V behind itself.
__device__ __forceinline__ void apply_block(const Shared& s, Strip& strip, const float2* triangle,
                                            const char* next_image, int block, bool more, int warp,
                                            int lane) {
  const int tile = warp / 4, column = warp % 4;  // of W, that this warp multiplies with T
  const int first_group = 2 * block;
  float2 t[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) t[k] = __ldcg(triangle + (column * 4 + k) * 32 + lane);

  {
    const char* lane_image = s.image + lane / 8 % 2 * 1024 + lane / 16 * 512 + lane % 8 * 16;
    float part[2][4][4] = {};
    project_group<0>(strip, lane_image, first_group, warp, part);
    project_group<1>(strip, lane_image, first_group, warp, part);
    project_group<2>(strip, lane_image, first_group, warp, part);
    project_group<3>(strip, lane_image, first_group, warp, part);
    s.w[warp * 32 + lane] = sum_parts(s, part, warp, lane);
  }
  half_barrier(tile);  // W of my columns is there
  {
    float product[4] = {};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k > column) break;
      const float4 w = s.w[(tile * 4 + k) * 32 + lane];
      std::uint32_t high[4], low[4], t_high[2], t_low[2];
      split_tf32(w.x, high[0], low[0]);
      split_tf32(w.z, high[1], low[1]);
      split_tf32(w.y, high[2], low[2]);
      split_tf32(w.w, high[3], low[3]);
      split_tf32(t[k].x, t_high[0], t_low[0]);
      split_tf32(t[k].y, t_high[1], t_low[1]);
      multiply_add_tf32(product, low, t_high[0], t_high[1]);
      multiply_add_tf32(product, high, t_low[0], t_low[1]);
      multiply_add_tf32(product, high, t_high[0], t_high[1]);
    }
    uint4 halves;
    split(product[0], product[1], halves.x, halves.z);
    split(product[2], product[3], halves.y, halves.w);
    s.tw[warp * 32 + lane] = halves;
  }
  __syncthreads();  // T'W is there

  std::uint32_t high[2][2][4], low[2][2][4];  // [tile][step]
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint4 halves = s.tw[(i * 4 + j) * 32 + lane];
      high[i][j / 2][j % 2 * 2] = halves.x, high[i][j / 2][j % 2 * 2 + 1] = halves.y;
      low[i][j / 2][j % 2 * 2] = halves.z, low[i][j / 2][j % 2 * 2 + 1] = halves.w;
    }
  const char* lane_image = s.image + lane / 16 * 512 + (lane / 8 % 2 * 8 + lane % 8) * 16;
#pragma unroll
  for (int i = 0; i < kGroups; ++i) {
    const int group = warp + i * kWarps;
    if (group >= first_group) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t b[2][4];
#pragma unroll
        for (int step = 0; step < 2; ++step)
          load_transposed(b[step], lane_image + (group * 2 + half) * 1024 + step * 256);
#pragma unroll
        for (int u = 0; u < 2; ++u) {
          // Summed apart from A: the accumulation cuts, and A is the larger.
          float product[4] = {};
#pragma unroll
          for (int step = 0; step < 2; ++step) {
            multiply_add(product, low[u][step], b[step][0], b[step][1]);
            multiply_add(product, high[u][step], b[step][2], b[step][3]);
          }
#pragma unroll
          for (int step = 0; step < 2; ++step)
            multiply_add(product, high[u][step], b[step][0], b[step][1]);
#pragma unroll
          for (int e = 0; e < 4; ++e) strip.a[u][i][e / 2][half * 2 + e % 2] -= product[e];
        }
      }
    }
    __syncwarp();  // all lanes have read the group: its place is free
    fetch_group(s, next_image, group, lane, more && group >= first_group + 2);
  }
}

// --- the factorization of a panel ---

// Column 8 k + warp of the panel in registers: v[k][4 i + e] is row first + 128 i + 4 lane + e.
// Whoever owns the next pivot column makes the reflector, reflects that column and publishes it
// with the reflector's numbers; everyone's other columns follow one step behind.
template <int kHeight>
struct Columns {
  static constexpr int kQuads = kHeight / 128, kElements = 4 * kQuads;

  Shared s;
  float v[kColumnsEach][kElements];
  float old[kElements];      // the pivot before, with its head
  float dots[kColumnsEach];  // of my columns with it
  float top[kColumnsEach];   // their elements in its row
  int warp, lane, parity;
  int first;   // row of the window
  int offset;  // row of the panel's first pivot in it

  __device__ __forceinline__ float4 get(int column, int i) const {
    return *reinterpret_cast<const float4*>(s.slots + column * kSlot + first + 128 * i + 4 * lane);
  }
  __device__ __forceinline__ void put(int column, int i, float4 x) const {
    *reinterpret_cast<float4*>(s.slots + column * kSlot + first + 128 * i + 4 * lane) = x;
  }
  // Of the element in row `row` of the window, which is one of the first 128.
  __device__ __forceinline__ float pick(const float (&column)[kElements], int row) const {
    const float even = row & 2 ? column[2] : column[0], odd = row & 2 ? column[3] : column[1];
    return __shfl_sync(~0u, row & 1 ? odd : even, row / 4);
  }

  __device__ __forceinline__ void load() {
#pragma unroll
    for (int k = 0; k < kColumnsEach; ++k)
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        float4 x = get(8 * k + warp, i);
        if (i == 0 && 4 * lane < offset) x = make_float4(0, 0, 0, 0);
        v[k][4 * i] = x.x, v[k][4 * i + 1] = x.y, v[k][4 * i + 2] = x.z, v[k][4 * i + 3] = x.w;
      }
  }

  __device__ __forceinline__ void publish(const float (&column)[kElements], int j) const {
    const int row = offset + j;
    const float head = pick(column, row);
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      float x[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) x[e] = i == 0 && 4 * lane + e <= row ? 0.0f : column[4 * i + e];
      put(j, i, make_float4(x[0], x[1], x[2], x[3]));
    }
    if (lane == 0) s.heads[j] = head;
    __syncwarp();
    if (lane == 0) barrier_arrive(&s.bars[j]);
  }

  // Column k takes the reflector of the pivot before.
  __device__ __forceinline__ float factor_of(int k, const float4& r) const {
    return -r.x * (r.y * fmaf(r.x, dots[k], top[k]));
  }

  // The reflector of column j from its tail and its head; all lanes get it.
  __device__ __forceinline__ Reflector reflect(int j, float square, float& dot, float& scale_to,
                                               float& undo) const {
    float alpha = s.heads[j];
    bool nonzero = true;
    scale_to = 1, undo = 1;
    if (square < kTinySquare) {
      float most = 0;
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const float4 x = get(j, i);
        most = fmaxf(fmaxf(most, fmaxf(fabsf(x.x), fabsf(x.y))), fmaxf(fabsf(x.z), fabsf(x.w)));
      }
#pragma unroll
      for (int level = 16; level > 0; level >>= 1)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, level));
      nonzero = most != 0;
      const Scale scale = scale_for(fmaxf(most, fabsf(alpha)));
      alpha *= scale.to;
      dot *= scale.to;
      scale_to = scale.to, undo = scale.back;
      square = 0;
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const float4 x = get(j, i);
        const float y[4] = {x.x * scale.to, x.y * scale.to, x.z * scale.to, x.w * scale.to};
#pragma unroll
        for (int e = 0; e < 4; ++e) square = fmaf(y[e], y[e], square);
      }
#pragma unroll
      for (int level = 16; level > 0; level >>= 1) square += __shfl_xor_sync(~0u, square, level);
    }
    Reflector r = make_reflector(alpha, square);
    if (!nonzero) r = {alpha, 0, 0, 0};
    return r;
  }

  __device__ __forceinline__ void keep(int j, const Reflector& r, float scale_to, float undo,
                                       float* tau, bool tau_wanted) const {
    if (lane == 0) {
      s.scalars[j] = make_float4(r.gamma, r.tau, r.head, scale_to);
      s.betas[j] = r.beta * undo;
      if (tau_wanted) tau[j] = r.tau;
    }
  }

  // Pivot j = next - 1 is published. kMine: which of my columns may be the next pivot.
  template <int kMine>
  __device__ __forceinline__ void step(int next, float* tau, bool tau_wanted) {
    const int j = next - 1;
    barrier_wait(&s.bars[j], parity);
    if (kMine * 8 + warp < next && kMine == kColumnsEach - 1) return;  // nothing of mine is left
    float factor[kColumnsEach] = {};
    if (j > 0) {
      const float4 r = s.scalars[j - 1];
      if (r.w != 1) {
#pragma unroll
        for (int q = 0; q < kElements; ++q) old[q] *= r.w;
#pragma unroll
        for (int k = kMine; k < kColumnsEach; ++k) dots[k] *= r.w;
      }
      const int row = offset + j - 1 - 4 * lane;
#pragma unroll
      for (int e = 0; e < 4; ++e) old[e] = e == row ? r.z : old[e];
#pragma unroll
      for (int k = kMine; k < kColumnsEach; ++k) factor[k] = factor_of(k, r);
    }
    const bool next_is_mine = kMine * 8 + warp == next;
    if (next_is_mine) {
      float square[4] = {}, dot[4] = {};
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const float4 quad = get(j, i);
        const float x[4] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float& mine = v[kMine][4 * i + e];
          mine = fmaf(factor[kMine], old[4 * i + e], mine);
          square[e] = fmaf(x[e], x[e], square[e]);
          dot[e] = fmaf(x[e], mine, dot[e]);
        }
      }
      float s2 = (square[0] + square[1]) + (square[2] + square[3]);
      float d = (dot[0] + dot[1]) + (dot[2] + dot[3]);
      const float above = pick(v[kMine], offset + j);
#pragma unroll
      for (int level = 16; level > 0; level >>= 1) {
        s2 += __shfl_xor_sync(~0u, s2, level);
        d += __shfl_xor_sync(~0u, d, level);
      }
      float scale_to, undo;
      const Reflector r = reflect(j, s2, d, scale_to, undo);
      keep(j, r, scale_to, undo, tau, tau_wanted);
      const float t = r.tau * fmaf(r.gamma, d, above), u = -t * r.gamma;
      const int row = offset + j - 4 * lane;
      const auto reflect_next = [&](auto scaled) {
#pragma unroll
        for (int i = 0; i < kQuads; ++i) {
          const float4 quad = get(j, i);
          const float x[4] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            float& mine = v[kMine][4 * i + e];
            mine = fmaf(u, decltype(scaled)::value ? x[e] * scale_to : x[e], mine);
            if (i == 0 && e == row) mine -= t;
          }
        }
      };
      if (scale_to == 1)
        reflect_next(std::false_type{});
      else
        reflect_next(std::true_type{});
      publish(v[kMine], next);
    }
    // The others: one step behind, then the products with this pivot.
    const bool first_too = kMine * 8 + warp > next;
    float part[kColumnsEach] = {};
    const auto follow = [&](auto from) {
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const float4 quad = get(j, i);
        const float x[4] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
        for (int k = decltype(from)::value; k < kColumnsEach; ++k)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            v[k][4 * i + e] = fmaf(factor[k], old[4 * i + e], v[k][4 * i + e]);
            part[k] = fmaf(x[e], v[k][4 * i + e], part[k]);
          }
#pragma unroll
        for (int e = 0; e < 4; ++e) old[4 * i + e] = x[e];
      }
#pragma unroll
      for (int k = decltype(from)::value; k < kColumnsEach; ++k) top[k] = pick(v[k], offset + j);
#pragma unroll
      for (int level = 16; level > 0; level >>= 1)
#pragma unroll
        for (int k = decltype(from)::value; k < kColumnsEach; ++k)
          part[k] += __shfl_xor_sync(~0u, part[k], level);
#pragma unroll
      for (int k = decltype(from)::value; k < kColumnsEach; ++k) dots[k] = part[k];
    };
    if (first_too)
      follow(std::integral_constant<int, kMine>{});
    else
      follow(std::integral_constant<int, kMine + 1>{});
  }

  __device__ __forceinline__ void run(float* tau, int taus) {
    load();
#pragma unroll
    for (int k = 0; k < kColumnsEach; ++k) dots[k] = top[k] = 0;
#pragma unroll
    for (int q = 0; q < kElements; ++q) old[q] = 0;
    if (warp == 0) publish(v[0], 0);
    for (int next = 1; next < 8; ++next) step<0>(next, tau, next <= taus);
    for (int next = 8; next < 16; ++next) step<1>(next, tau, next <= taus);
    for (int next = 16; next < 24; ++next) step<2>(next, tau, next <= taus);
    for (int next = 24; next < 32; ++next) step<3>(next, tau, next <= taus);
    if (warp == 0) {
      barrier_wait(&s.bars[31], parity);
      float square = 0, unused = 0;
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const float4 x = get(31, i);
        square = fmaf(x.x, x.x, fmaf(x.y, x.y, fmaf(x.z, x.z, fmaf(x.w, x.w, square))));
      }
#pragma unroll
      for (int level = 16; level > 0; level >>= 1) square += __shfl_xor_sync(~0u, square, level);
      float scale_to, undo;
      const Reflector r = reflect(31, square, unused, scale_to, undo);
      keep(31, r, scale_to, undo, tau, 32 <= taus);
    }
    __syncthreads();  // every pivot has been read, every reflector is there
  }

  // My columns go to H, and as raised V, a unit lower trapezium, to the slots.
  __device__ __forceinline__ void finish(float* h, const Shape& shape, int panel) const {
#pragma unroll
    for (int k = 0; k < kColumnsEach; ++k) {
      const int column = 8 * k + warp, pivot = offset + column;
      const float4 r = s.scalars[column];
      const float beta = s.betas[column], back = s.backs[column];
      float* to = h + std::int64_t{panel * kPanel + column} * shape.m + first + 4 * lane;
      const bool wanted = panel * kPanel + column < shape.n;
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        float out[4], low[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int below = 128 * i + 4 * lane + e - pivot;
          const float x = v[k][4 * i + e], tail = x * r.w * r.x;
          out[e] = i > 0 || below > 0 ? tail : below == 0 ? beta * back : x * back;
          low[e] = i > 0 || below > 0 ? kRaise * tail : below == 0 ? kRaise : 0.0f;
        }
        put(column, i, make_float4(low[0], low[1], low[2], low[3]));
        const int row = first + 128 * i + 4 * lane;
        if (wanted && row < shape.m && (i > 0 || 4 * lane >= offset))
          *reinterpret_cast<float4*>(to + 128 * i) = make_float4(out[0], out[1], out[2], out[3]);
      }
    }
  }
};

template <int kHeight>
__device__ __forceinline__ void factor_panel(const Shared& s, float* h, float* tau,
                                             const Shape& shape, int panel, int warp, int lane) {
  Columns<kHeight> columns;
  columns.s = s;
  columns.warp = warp, columns.lane = lane, columns.parity = panel & 1;
  columns.first = kRows - kHeight;
  columns.offset = panel * kPanel - columns.first;
  columns.run(tau + panel * kPanel, shape.taus - panel * kPanel);
  columns.finish(h, shape, panel);
}

// From V in the slots: its halves to `image`, and V'V of the whole block as sums by tiles.
__device__ __forceinline__ float4 pack_panel(const Shared& s, char* image, int panel, int warp,
                                             int lane) {
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
      const std::uint32_t a_high[4] = {high[2 * tile][0], high[2 * tile + 1][0], high[2 * tile][1],
                                       high[2 * tile + 1][1]};
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
  return sum_parts(s, part, warp, lane);
}

// T of the panel from V'V, for V and W that are raised: a lane a row.
__device__ __forceinline__ void make_triangle(const Shared& s, float* triangle, int lane) {
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

// One matrix a block.
__global__ void __launch_bounds__(kThreads, 2)
    factor_matrices(const float* a, float* h, float* tau, char* images, float* triangles,
                    Shape shape) {
  extern __shared__ float4 shared_memory[];
  const Shared s = carve(shared_memory);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const std::int64_t matrix = blockIdx.x;
  const int panels = (shape.n + kPanel - 1) / kPanel;
  const int blocks = (shape.taus + kPanel - 1) / kPanel;
  a += matrix * shape.m * shape.n;
  h += matrix * shape.m * shape.n;
  tau += matrix * shape.taus;
  images += matrix * blocks * kImageBytes;
  triangles += matrix * blocks * kTriangle;

  if (threadIdx.x < kPanel) {
    barrier_init(&s.bars[threadIdx.x]);
    s.most[threadIdx.x] = 0;
  }
  __syncthreads();

  for (int panel = 0; panel < panels; ++panel) {
    Strip strip;
    const int before = min(panel, blocks);  // block reflectors to apply
    if (before > 0)
#pragma unroll
      for (int i = 0; i < kGroups; ++i) fetch_group(s, images, warp + i * kWarps, lane, true);
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
          if (column < shape.n && row < shape.m)
            x = __ldcs(reinterpret_cast<const float4*>(from + row));
          float(&to)[4] = strip.a[tile][i][half];
          to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
        }
      }
    if (panel > 0 && panel <= blocks && warp == 0)
      make_triangle(s, triangles + (panel - 1) * kTriangle, lane);

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
    float backs[2][2];
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
        backs[tile][half] = scale.back;
        if (warp == 0 && t == 0) s.backs[tile * 16 + half * 8 + g] = scale.back;
#pragma unroll
        for (int i = 0; i < kGroups; ++i)
#pragma unroll
          for (int e = 0; e < 4; ++e) strip.a[tile][i][half][e] *= scale.to;
      }

    for (int block = 0; block < before; ++block)
      apply_block(s, strip, reinterpret_cast<const float2*>(triangles + block * kTriangle),
                  images + (block + 1) * kImageBytes, block, block + 1 < before, warp, lane);
    const bool factors = panel < blocks;
    __syncthreads();  // nobody reads V or the maxima any more
    if (threadIdx.x < kPanel) s.most[threadIdx.x] = 0;

#pragma unroll
    for (int tile = 0; tile < 2; ++tile)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int column = tile * 16 + half * 8 + g;
        float* to = h + std::int64_t{panel * kPanel + column} * shape.m;
        const float back = backs[tile][half];
#pragma unroll
        for (int i = 0; i < kGroups; ++i) {
          const int group = warp + i * kWarps, row = group * 16 + 4 * t;
          const float(&x)[4] = strip.a[tile][i][half];
          if (factors && group >= 2 * panel)
            *reinterpret_cast<float4*>(s.slots + column * kSlot + row) =
                make_float4(x[0], x[1], x[2], x[3]);
          else if (panel * kPanel + column < shape.n && row < shape.m)
            *reinterpret_cast<float4*>(to + row) =
                make_float4(x[0] * back, x[1] * back, x[2] * back, x[3] * back);
        }
      }
    __syncthreads();  // the panel is in the slots
    if (!factors) continue;

    if (panel < 4)
      factor_panel<512>(s, h, tau, shape, panel, warp, lane);
    else if (panel < 8)
      factor_panel<384>(s, h, tau, shape, panel, warp, lane);
    else if (panel < 12)
      factor_panel<256>(s, h, tau, shape, panel, warp, lane);
    else
      factor_panel<128>(s, h, tau, shape, panel, warp, lane);
    if (panel + 1 >= panels) break;
    __syncthreads();  // V is in the slots

    const float4 gram = pack_panel(s, images + panel * kImageBytes, panel, warp, lane);
    __syncthreads();  // everyone has summed, and the slots are free
    constexpr float kLower = 1 / (kRaise * kRaise);
    const int row = warp / 4 * 16 + g, column = warp % 4 * 8 + 2 * t;
    s.gram[column * kPanel + row] = gram.x * kLower;
    s.gram[(column + 1) * kPanel + row] = gram.y * kLower;
    s.gram[column * kPanel + row + 8] = gram.z * kLower;
    s.gram[(column + 1) * kPanel + row + 8] = gram.w * kLower;
    __syncthreads();  // V'V and the halves of V are there
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H"), tau = args.output<float>("tau");
  const std::int64_t batch = a.dim(0);
  const int m = static_cast<int>(a.dim(1)), n = static_cast<int>(a.dim(2)), k = std::min(m, n);
  if (m > kRows || m % 4 != 0) {
    plan.not_supported("more than 512 rows, or a number of rows that is no multiple of 4");
    return;
  }
  const std::int64_t blocks = (k + kPanel - 1) / kPanel;
  const auto images = plan.scratch<char>(batch * blocks * kImageBytes);
  const auto triangles = plan.scratch<float>(batch * blocks * kTriangle);
  plan.launch(factor_matrices, {.grid = batch, .block = kThreads, .shared_bytes = kSharedBytes}, a,
              h, tau, images, triangles, Shape{m, n, k});
}
