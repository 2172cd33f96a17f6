// Blocked Householder QR for few large matrices. A cluster holds a panel of 128 columns, 256 rows a
// block: it applies the panel before to it, then factors 16 columns at a time. Their Gram matrix in
// FP64 and their top rows, summed over the cluster, give R, tau and the triangle that turns the
// rest of the columns into V, by 16 steps of one warp; columns that are too nearly dependent take
// Householder steps instead. The rest of the matrix takes a panel's reflectors beside the next
// panel. Every product of an update is three products of FP16 halves. Panels of more than 4096 rows
// stay in memory, 512 rows a block, of which the chip holds only V of the group.
#include <cuda_fp16.h>
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

KBEAM_KNOB(int, kGram, 1, 0, 1);             // 0: Householder steps in every panel
KBEAM_KNOB(int, kOverlap, 1, 0, 1);          // the rest is updated beside the next panel
KBEAM_KNOB(int, kMostRanks, 16, 8, 16);      // blocks of a cluster
KBEAM_KNOB(int, kMostTiles, 12, 8, 12, 16);  // tiles of rows that one block projects or updates

namespace {

constexpr int kPanel = 128;     // columns of a panel
constexpr int kRows = 256;      // rows of a block of its cluster
constexpr int kTallRows = 512;  // the same where the panel stays in memory
constexpr int kGroup = 16;      // columns that are factored together
constexpr int kThreads = 256, kWarps = kThreads / 32;
constexpr int kTile = 128;  // rows and columns of an update tile
constexpr int kPieces = kPanel / 8;

// A sum of squares below this may have lost something to underflow; then the column is scaled
// again and summed anew.
constexpr float kTinySquare = 0x1p-90f;
// What may be left of a column's square inside a group, and of a pivot's square below the diagonal,
// for the Gram matrix to be trusted; and from what on FP32 is enough for V.
constexpr double kLeastPivot = 1e-7, kLeastTail = 1e-9, kGoodPivot = 0.03;
// Brings typical elements of V near 1, so that the low half keeps its bits.
constexpr float kRaise = 0x1p6f;

struct Step {
  int m, n;         // of the matrix; m is the leading dimension of H
  int reflectors;   // of the matrix
  int stride;       // leading dimension of X, whose rows and columns are padded with zeros
  int columns_all;  // of X
  int image_rows;   // of an image of V
  int first;        // row and column where the panel begins
};

// --- instructions ---

__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ std::uint32_t address_in(std::uint32_t address, int rank) {
  std::uint32_t there;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}
__device__ __forceinline__ void barrier_init(std::uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
__device__ __forceinline__ void barrier_expect(std::uint64_t* barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}
__device__ __forceinline__ void barrier_arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
__device__ __forceinline__ void barrier_wait(std::uint64_t* barrier, std::uint32_t parity) {
  std::uint32_t done = 0;
  while (!done)
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
        " selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
}
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Writes to the same place in the shared memory of block `rank`, and counts the bytes on its
// barrier.
__device__ __forceinline__ void send(float* place, float x, std::uint64_t* barrier, int rank) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                   address_in(shared_address(place), rank)),
               "r"(__float_as_uint(x)), "r"(address_in(shared_address(barrier), rank))
               : "memory");
}
__device__ __forceinline__ void send(double* place, double x, std::uint64_t* barrier, int rank) {
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(
                   address_in(shared_address(place), rank)),
               "l"(__double_as_longlong(x)), "r"(address_in(shared_address(barrier), rank))
               : "memory");
}
__device__ __forceinline__ void send(float2* place, float2 x, std::uint64_t* barrier, int rank) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(
          address_in(shared_address(place), rank)),
      "r"(__float_as_uint(x.x)), "r"(__float_as_uint(x.y)),
      "r"(address_in(shared_address(barrier), rank))
      : "memory");
}
__device__ __forceinline__ void send(float4* place, float4 x, std::uint64_t* barrier, int rank) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(address_in(shared_address(place), rank)),
      "r"(__float_as_uint(x.x)), "r"(__float_as_uint(x.y)), "r"(__float_as_uint(x.z)),
      "r"(__float_as_uint(x.w)), "r"(address_in(shared_address(barrier), rank))
      : "memory");
}
__device__ __forceinline__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}
// What all lanes have alike, so that the compiler knows it: a branch on it leaves the warp whole.
__device__ __forceinline__ int uniform(int x) {
  return static_cast<int>(__reduce_max_sync(~0u, static_cast<unsigned>(x)));
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
__device__ __forceinline__ void let_next_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
// Until the kernel before this one is done, where the plan lets them overlap.
__device__ __forceinline__ void wait_for_previous() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
__device__ __forceinline__ void copy_16(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
// Between shared memory and elsewhere, `bytes` at once; what was written to shared memory must have
// been shown.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, int bytes,
                                          std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void store_bulk(void* to, const void* from, int bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\ncp.async.bulk.commit_group;" ::
          "l"(to),
      "r"(shared_address(from)), "r"(bytes)
      : "memory");
}
__device__ __forceinline__ void wait_bulk() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
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
// 1 / x to about 2^-20 for normal x.
__device__ __forceinline__ double rough_reciprocal(double x) {
  double r;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  return r;
}
__device__ __forceinline__ double reciprocal_root(double x) {
  double r;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  const double e = fma(-x * r, r, 1.0);
  return fma(r * e, fma(0.375, e, 0.5), r);
}
__device__ __forceinline__ std::uint32_t to_halves(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
__device__ __forceinline__ float2 from_halves(std::uint32_t pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}
// c += a b, 16 x 8 x 16. Element 2 q + h of a: row lane / 4 + 8 h, column lane % 4 + 4 q; element q
// of b: row lane % 4 + 4 q, column lane / 4; element 2 h + e of c: row lane / 4 + 8 h, column
// 2 (lane % 4) + e.
__device__ __forceinline__ void multiply_add(double (&c)[4], const double (&a)[8],
                                             const double (&b)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3},"
      " {%4, %5, %6, %7, %8, %9, %10, %11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]),
        "d"(b[0]), "d"(b[1]), "d"(b[2]), "d"(b[3]));
}
// c += a b, 16 x 8 x 16 in halves: element pair r of a: row lane / 4 + r % 2 * 8, columns 2 (lane %
// 4) + r / 2 * 8; of b: rows 2 (lane % 4) + 8 r, column lane / 4.
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
      " {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Four matrices of 8 x 8 halves; lane l gives row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(std::uint32_t (&to)[4], const std::uint16_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void load_transposed(std::uint32_t (&to)[4], const std::uint16_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}
// The 64 sums of a thread in the text of an instruction, and as its operands.
#define SUM_NAMES                            \
  "{%0, %1, %2, %3, %4, %5, %6, %7, "        \
  "%8, %9, %10, %11, %12, %13, %14, %15, "   \
  "%16, %17, %18, %19, %20, %21, %22, %23, " \
  "%24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, " \
  "%40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, " \
  "%56, %57, %58, %59, %60, %61, %62, %63}"
#define FOUR_SUMS(c) "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3])
#define SUMS(c)                                                                                  \
  FOUR_SUMS((c)[0]), FOUR_SUMS((c)[1]), FOUR_SUMS((c)[2]), FOUR_SUMS((c)[3]), FOUR_SUMS((c)[4]), \
      FOUR_SUMS((c)[5]), FOUR_SUMS((c)[6]), FOUR_SUMS((c)[7]), FOUR_SUMS((c)[8]),                \
      FOUR_SUMS((c)[9]), FOUR_SUMS((c)[10]), FOUR_SUMS((c)[11]), FOUR_SUMS((c)[12]),             \
      FOUR_SUMS((c)[13]), FOUR_SUMS((c)[14]), FOUR_SUMS((c)[15])
// c (+)= a b on a warpgroup, 64 x 128 x 16: a as the fragments of its four warps or in shared
// memory; kTurned: the 16 bytes of a piece of b lie across the sum.
template <int kTurned>
__device__ __forceinline__ void multiply_wide(float (&c)[16][4], const std::uint32_t (&a)[4],
                                              std::uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUM_NAMES
      ", {%64, %65, %66, %67}, %68, p, 1, 1, %70;\n}"
      : SUMS(c)
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(kTurned));
}
__device__ __forceinline__ void multiply_wide(float (&c)[16][4], std::uint64_t a, std::uint64_t b,
                                              int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " SUM_NAMES
      ", %64, %65, p, 1, 1, 0, 0;\n}"
      : SUMS(c)
      : "l"(a), "l"(b), "r"(add));
}
// An operand in pieces of 8 rows of 16 bytes, `along` bytes apart in the direction of the sum and
// `across` in the other.
__device__ __forceinline__ std::uint64_t operand(std::uint32_t address, int along, int across) {
  return static_cast<std::uint64_t>((address & 0x3ffff) >> 4) |
         static_cast<std::uint64_t>(along >> 4) << 16 |
         static_cast<std::uint64_t>(across >> 4) << 32;
}
__device__ __forceinline__ void begin_wide() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void end_wide() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int kLeft>
__device__ __forceinline__ void wait_wide() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
// What this thread wrote to shared memory becomes visible to the tensor cores.
__device__ __forceinline__ void show_to_tensor_cores() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
// --- end of instructions ---

// Two numbers as FP16 halves: x = high + low to 22 bits.
__device__ __forceinline__ void split(float first, float second, std::uint32_t& high,
                                      std::uint32_t& low) {
  high = to_halves(first, second);
  const float2 kept = from_halves(high);
  low = to_halves(first - kept.x, second - kept.y);
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
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
  for (int level = 16; level > 0; level >>= 1) x += __shfl_xor_sync(~0u, x, level);
  return x;
}
// Over each half of a warp.
__device__ __forceinline__ float warp_sum_16(float x) {
#pragma unroll
  for (int level = 8; level > 0; level >>= 1) x += __shfl_xor_sync(~0u, x, level);
  return x;
}

// --- the panel: a cluster a matrix ---

// A sum over the cluster: block r adds up the r-th share of the elements and sends it to all.
constexpr int kGramSize = 8 * 8 + kGroup * 8;  // [row][column] of the upper left 8 x 8, then of the
                                               // last 8 columns
constexpr int kSpareRanks = 12;                // shares are rounded up
constexpr int kYStride = 20;                   // words from one column of Y to the next

enum class Quality { bad, precise, good, zero };

// While the panel's columns are being updated, they are in registers.
struct BeforeMemory {
  // Of the panel before: [high, low][piece][row][8], pieces on different banks.
  std::uint16_t v[2][kPieces][kRows + 1][8];
  union {
    float box[(kPanel + kSpareRanks) * kPanel];  // its V'X: [rank][own column][reflector]
    std::uint16_t y[2][kPieces][kPanel][8];
  };
  float4 sums[kPanel][2];  // of 8 columns
  float4 parts[kPanel][2];
  std::uint16_t own_y[2][kPieces][8][8];
};

struct Nothing {};

template <bool kTall>
struct PanelMemory {
  static constexpr int kOwnRows = kTall ? kTallRows : kRows;

  std::conditional_t<kTall, Nothing, float[kPanel][kRows + 16]> p;
  // From here on every place of 16 bytes is one, with or without p.
  union alignas(16) {
    // V of the group as halves: [high, low][piece of 8 reflectors][row].
    std::uint16_t v[2][2][kOwnRows][8];
    double others[kWarps][kGramSize];
  };
  float sum_box[(kPanel + kSpareRanks) * kGroup];
  float sum_all[kPanel * kGroup];  // V'C by columns
  // Products of reflectors on and above the diagonal: blocks of 16 x 16, column of blocks by
  // column.
  float products[kPanel / kGroup * (kPanel / kGroup + 1) / 2][kGroup][kGroup];
  std::uint32_t y[kPanel - kGroup][kYStride];  // of the columns beyond the first group
  double gram_box[kGramSize + 18];
  float top_box[kGroup * kGroup];
  double gram_all[kGramSize];
  float top_all[kGroup * kGroup];        // the group's top rows, by columns
  double2 pivots[2][2][kGroup / 2 + 1];  // columns of G and X that are published in the chain
  double lu_precise[kGroup + 1][kGroup], over_precise[kGroup];  // one row further down
  float lu[kGroup][kGroup], r[kGroup][kGroup], over[kGroup];
  float step_box[2][16][kGroup], step_heads[2][kGroup];

  // R of the chain, one row further down, takes the place of V.
  __device__ __forceinline__ double (*r_precise())[kGroup] {
    return reinterpret_cast<double(*)[kGroup]>(others[0]);
  }
};

template <bool kTall>
struct SharedMemory {
  union {
    std::conditional_t<kTall, Nothing, BeforeMemory> before;
    PanelMemory<kTall> panel;
  };
  float taus[kPanel], backs[kPanel];
  std::uint64_t v_ready, before_ready;
  std::uint64_t gram_ready, gram_done, sum_ready, sum_done, step_ready[2];
  Quality quality;
};

__device__ __forceinline__ int block_of_products(int row, int column) {
  return column * (column + 1) / 2 + row;
}

// Rows 16 j + 0 .. 3 of two columns, 8 apart.
template <int kCount>
__device__ __forceinline__ void load_rows(float4 (&x)[kCount][2], const float* from, int stride,
                                          int valid) {
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      x[j][h] = make_float4(0, 0, 0, 0);
      if (j * 16 < valid)
        x[j][h] =
            __ldcg(reinterpret_cast<const float4*>(from + std::int64_t{8 * h} * stride + j * 16));
    }
}
// The fragment of 16 columns and 16 rows as halves.
__device__ __forceinline__ void split_rows(const float4 (&x)[2], std::uint32_t (&high)[4],
                                           std::uint32_t (&low)[4]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    split(x[h].x, x[h].y, high[h], low[h]);
    split(x[h].z, x[h].w, high[2 + h], low[2 + h]);
  }
}
// x -= c / kRaise, c as two neighbouring pieces of an accumulator.
__device__ __forceinline__ void subtract_rows(float4 (&x)[2], const float (&first)[4],
                                              const float (&second)[4]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    x[h].x = fmaf(first[2 * h], -1 / kRaise, x[h].x);
    x[h].y = fmaf(first[2 * h + 1], -1 / kRaise, x[h].y);
    x[h].z = fmaf(second[2 * h], -1 / kRaise, x[h].z);
    x[h].w = fmaf(second[2 * h + 1], -1 / kRaise, x[h].w);
  }
}

// What each block adds up of `count` elements, in vectors of `vector`.
struct Share {
  int size, own, magic;
  __device__ __forceinline__ Share(int count, int vector, int rank, int ranks)
      : size((count / vector + ranks - 1) / ranks * vector),
        own(max(0, min(size, count - rank * size))),
        magic(65536 / size + 1) {}
  // For up to 256 elements.
  __device__ __forceinline__ int owner(int element) const { return element * magic >> 16; }
};

// Where a row of V lies among its 16, so that what a thread has of an operand or an accumulator are
// four rows one after the other of X.
__device__ __forceinline__ int place_of_row(int row) {
  return (row & ~14) | (row & 2) << 2 | (row & 12) >> 1;
}

template <bool kTall>
struct Panel {
  static constexpr int kOwnRows = PanelMemory<kTall>::kOwnRows;

  SharedMemory<kTall>& all;
  PanelMemory<kTall>& s;
  float* in_memory;     // this block's rows, where the panel stays there
  std::int64_t stride;  // of its columns
  int thread, warp, lane, rank, ranks;
  int lead;      // rows of the cluster above the panel
  uint4* image;  // of V, from this block's first row on: [high, low][piece][row]
  int image_rows;
  Share gram, top, columns;
  std::uint32_t parity_gram, parity_sum, letter;

  // This block's rows of a column of the panel.
  __device__ __forceinline__ float* own_column(int column) const {
    if constexpr (kTall)
      return in_memory + column * stride;
    else
      return s.p[column];
  }

  __device__ __forceinline__ std::int64_t column_step() const {
    return kTall ? stride : kRows + 16;
  }

  // The row of this block where the group begins.
  __device__ __forceinline__ int first_row(int group) const {
    return rank == 0 ? lead + group * kGroup : 0;
  }

  __device__ __forceinline__ void arm_gram() {
    barrier_expect(&all.gram_ready, gram.own * ranks * 8 + top.own * 4);
    barrier_expect(&all.gram_done, kGramSize * 8 + kGroup * kGroup * 4);
  }
  __device__ __forceinline__ void arm_sum() {
    barrier_expect(&all.sum_ready, columns.own * ranks * kGroup * 4);
    barrier_expect(&all.sum_done, kPanel * kGroup * 4);
  }
  __device__ __forceinline__ void arm_step(int which) {
    barrier_expect(&all.step_ready[which], (ranks + 1) * kGroup * 4);
  }

  // --- the panel before ---

  // X -= V T'(V'X) for the panel's columns. Two warpgroups hold 64 columns each, with all rows, as
  // accumulators of products whose right operand is V.
  __device__ __forceinline__ void apply_before(const float* x_from, const std::uint16_t* image,
                                               const float* triangle, std::uint16_t* y_all,
                                               const Step& step, int rows) {
    BeforeMemory& b = all.before;
    const int g = lane / 4, t = lane % 4;
    const int columns0 = warp / 4 * 64, column = columns0 + warp % 4 * 16 + g;
    const int valid = max(0, min(kRows, rows));  // a multiple of 128
    if (warp == 0) {
      if (lane == 0) barrier_expect(&all.v_ready, 2 * kPieces * valid * 16);
      __syncwarp();
      if (valid > 0)
        copy_bulk(&b.v[lane / kPieces][lane % kPieces][0][0],
                  image + std::int64_t{lane} * step.image_rows * 8, valid * 16, &all.v_ready);
    }
    for (int e = thread; e < 2 * kPieces * (kRows - valid); e += kThreads)
      *reinterpret_cast<uint4*>(b.v[0][e / (kRows - valid)][valid + e % (kRows - valid)]) =
          make_uint4(0, 0, 0, 0);
    const float* const x_at = x_from + std::int64_t{column} * step.stride + 4 * t;
    const int share = columns.size, own = columns.own;
    {
      constexpr int kPart = 64;
      float4 next[kPart / 16][2];
      load_rows(next, x_at, step.stride, valid);
      show_to_tensor_cores();
      __syncthreads();
      barrier_wait(&all.v_ready, 0);
      // 16 bytes to a piece of 8 reflectors and one row: the sum runs over rows.
      std::uint64_t v = operand(shared_address(b.v), 128, (kRows + 1) * 16);
      constexpr int kLow = kPieces * (kRows + 1);  // in units of 16 bytes
      float sums[16][4];
#pragma unroll 1
      for (int part = 0; part < kRows / kPart; ++part, v += kPart) {
        std::uint32_t high[kPart / 16][4], low[kPart / 16][4];
#pragma unroll
        for (int k = 0; k < kPart / 16; ++k) split_rows(next[k], high[k], low[k]);
        const int done = (part + 1) * kPart;
        if (done < kRows) load_rows(next, x_at + done, step.stride, valid - done);
        begin_wide();
#pragma unroll
        for (int k = 0; k < kPart / 16; ++k) {
          multiply_wide<1>(sums, low[k], v + k * 16, part > 0 || k > 0);
          multiply_wide<1>(sums, high[k], v + kLow + k * 16, 1);
          multiply_wide<1>(sums, high[k], v + k * 16, 1);
        }
        end_wide();
        wait_wide<0>();
      }
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int owner = columns.owner(column + 8 * h), slot = column + 8 * h - owner * share;
#pragma unroll
        for (int j = 0; j < 16; ++j)
          send(reinterpret_cast<float2*>(&b.box[(rank * share + slot) * kPanel + 8 * j + 2 * t]),
               make_float2(sums[j][2 * h], sums[j][2 * h + 1]), &all.before_ready, owner);
      }
    }

    // Y = T'W for the columns of this block, eight at a time; two threads a reflector.
    const int i = thread % kPanel, half = thread / kPanel;
    float factor[kPanel / 2];
#pragma unroll
    for (int l = 0; l < kPanel / 2; ++l)
      factor[l] = __ldg(triangle + (half * kPanel / 2 + l) * kPanel + i);
    barrier_wait(&all.before_ready, 0);
    for (int c0 = 0; c0 < own; c0 += 8) {
      float sum[4] = {};
      for (int r = 0; r < ranks; ++r)
#pragma unroll
        for (int c = 0; c < 4; ++c)
          if (c0 + half * 4 + c < own)
            sum[c] += b.box[(r * share + c0 + half * 4 + c) * kPanel + i];
      b.sums[i][half] =
          make_float4(sum[0] / kRaise, sum[1] / kRaise, sum[2] / kRaise, sum[3] / kRaise);
      __syncthreads();
      float y[8] = {};
#pragma unroll
      for (int l = 0; l < kPanel / 2; ++l) {
        const float4 first = b.sums[half * kPanel / 2 + l][0];
        const float4 second = b.sums[half * kPanel / 2 + l][1];
        y[0] = fmaf(factor[l], first.x, y[0]), y[1] = fmaf(factor[l], first.y, y[1]);
        y[2] = fmaf(factor[l], first.z, y[2]), y[3] = fmaf(factor[l], first.w, y[3]);
        y[4] = fmaf(factor[l], second.x, y[4]), y[5] = fmaf(factor[l], second.y, y[5]);
        y[6] = fmaf(factor[l], second.z, y[6]), y[7] = fmaf(factor[l], second.w, y[7]);
      }
      if (half == 1) {
        b.parts[i][0] = make_float4(y[0], y[1], y[2], y[3]);
        b.parts[i][1] = make_float4(y[4], y[5], y[6], y[7]);
      }
      __syncthreads();
      if (half == 0) {
        const float4 first = b.parts[i][0], second = b.parts[i][1];
        y[0] += first.x, y[1] += first.y, y[2] += first.z, y[3] += first.w;
        y[4] += second.x, y[5] += second.y, y[6] += second.z, y[7] += second.w;
#pragma unroll
        for (int c = 0; c < 8; ++c) {
          std::uint32_t high, low;
          split(y[c], 0, high, low);
          b.own_y[0][i / 8][c][i % 8] = static_cast<std::uint16_t>(high);
          b.own_y[1][i / 8][c][i % 8] = static_cast<std::uint16_t>(low);
        }
      }
      __syncthreads();
      if (c0 + thread % 8 < own)
        *reinterpret_cast<uint4*>(y_all +
                                  (thread / 8 * kPanel + rank * share + c0 + thread % 8) * 8) =
            *reinterpret_cast<const uint4*>(b.own_y[0][thread / 8][thread % 8]);
    }
    float4 x[kRows / 16][2];
    load_rows(x, x_at, step.stride, valid);
    cluster_sync();  // all of Y is there, and this block's boxes are free
#pragma unroll
    for (int e = thread; e < 2 * kPieces * kPanel; e += kThreads)
      copy_16(b.y[0][0][e], y_all + e * 8);
    commit_copies();
    wait_copies<0>();
    show_to_tensor_cores();
    __syncthreads();
    {
      const std::uint64_t y = operand(shared_address(b.y) + columns0 * 16, kPanel * 16, 128);
      const std::uint64_t v = operand(shared_address(b.v), (kRows + 1) * 16, 128);
      constexpr int kLowY = kPieces * kPanel, kLowV = kPieces * (kRows + 1);
#pragma unroll
      for (int part = 0; part < kRows / 128; ++part) {
        float sums[16][4];
        begin_wide();
#pragma unroll
        for (int k = 0; k < kPanel / 16; ++k) {
          const std::uint64_t left = y + 2 * k * kPanel,
                              right = v + 2 * k * (kRows + 1) + part * 128;
          multiply_wide(sums, left + kLowY, right, k > 0);
          multiply_wide(sums, left, right + kLowV, 1);
          multiply_wide(sums, left, right, 1);
        }
        end_wide();
        wait_wide<0>();
#pragma unroll
        for (int j = 0; j < 8; ++j) subtract_rows(x[part * 8 + j], sums[2 * j], sums[2 * j + 1]);
      }
    }
    __syncthreads();  // V is no longer needed
#pragma unroll
    for (int j = 0; j < kRows / 16; ++j)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        *reinterpret_cast<float4*>(&s.p[column + 8 * h][j * 16 + 4 * t]) = x[j][h];
  }

  // --- the group's Gram matrix and top rows, to every block ---

  __device__ __forceinline__ void gram_parts(int group) {
    const int g = lane / 4, t = lane % 4;
    double left[4] = {}, right[4] = {};
#pragma unroll
    for (int step = 0; step < kOwnRows / (16 * kWarps); ++step) {
      const int row = (step * kWarps + warp) * 16;
      if (row < first_row(group)) continue;
      const float4 x =
          *reinterpret_cast<const float4*>(own_column(group * kGroup + g) + row + 4 * t);
      const float4 y =
          *reinterpret_cast<const float4*>(own_column(group * kGroup + 8 + g) + row + 4 * t);
      const double a[8] = {x.x, y.x, x.y, y.y, x.z, y.z, x.w, y.w};
      const double b[2][4] = {{a[0], a[2], a[4], a[6]}, {a[1], a[3], a[5], a[7]}};
      multiply_add(left, a, b[0]);
      multiply_add(right, a, b[1]);
    }
    double* to = s.others[warp] + g * 8 + 2 * t;
    *reinterpret_cast<double2*>(to) = make_double2(left[0], left[1]);
    *reinterpret_cast<double2*>(to + 64) = make_double2(right[0], right[1]);
    *reinterpret_cast<double2*>(to + 128) = make_double2(right[2], right[3]);
  }
  __device__ __forceinline__ void exchange_gram(int group) {
    const int c0 = group * kGroup;
    if (rank == 0) {
      const int row = first_row(group) + thread % kGroup, owner = top.owner(thread);
      send(&s.top_box[thread - owner * top.size], own_column(c0 + thread / kGroup)[row],
           &all.gram_ready, owner);
    }
    gram_parts(group);
    __syncthreads();
    if (thread < kGramSize) {
      double sum = 0;
#pragma unroll
      for (int w = 0; w < kWarps; ++w) sum += s.others[w][thread];
      const int owner = gram.owner(thread);
      send(&s.gram_box[rank * gram.size + thread - owner * gram.size], sum, &all.gram_ready, owner);
    }
    barrier_wait(&all.gram_ready, parity_gram);
    if (thread < gram.own) {
      double sum = 0;
#pragma unroll 4
      for (int r = 0; r < ranks; ++r) sum += s.gram_box[r * gram.size + thread];
      s.gram_box[thread] = sum;
    }
    __syncthreads();
    const int vectors = gram.own / 2;
    for (int to = warp; to < ranks; to += kWarps)
      for (int piece = lane; piece < vectors + top.own / 4; piece += 32)
        if (piece < vectors)
          send(reinterpret_cast<float4*>(s.gram_all + rank * gram.size) + piece,
               reinterpret_cast<const float4*>(s.gram_box)[piece], &all.gram_done, to);
        else
          send(reinterpret_cast<float4*>(s.top_all + rank * top.size) + piece - vectors,
               reinterpret_cast<const float4*>(s.top_box)[piece - vectors], &all.gram_done, to);
  }

  // --- 16 steps on 16 x 16, by one warp ---

  __device__ __forceinline__ double of_gram(int i, int j) const {
    const int low = min(i, j), high = max(i, j);
    return s.gram_all[high < 8 ? low * 8 + high : 56 + low * 8 + high];
  }
  struct Steps {
    double root, square, norm, across;                // of the row of G before
    double own_over, own_sign, own_square, own_head;  // of the lane's own pivot
  };
  // Eight steps from step `first` on; a column moves up by one a step, so that its pivot is e[0].
  // `kLive` elements may follow it. One step more for X at the end.
  template <int kLive>
  __device__ __forceinline__ void steps(int first, double (&e)[kGroup + 1], Steps& of) {
    const bool top = lane >= 16;
    const int own = lane % 16;
#pragma unroll 1
    for (int i = first; i < first + 8 + (kLive < kGroup); ++i) {
      const int pivot = top ? i - 1 : i, from = (lane & 16) + max(pivot, 0);
      const double head = e[0], diagonal = __shfl_sync(~0u, head, from);
      const double next_square = __shfl_sync(~0u, head, i);
      const double next_across = __shfl_sync(~0u, head, own);
      double2* const down = s.pivots[i % 2][lane / 16];
      if (own == pivot) {
#pragma unroll
        for (int k = 0; k < kLive; k += 2) down[k / 2] = make_double2(e[k + 1], e[k + 2]);
      }
      __syncwarp();
      // The pivot of X is alpha - beta; G's is the square itself.
      const double value = diagonal + copysign(of.norm, diagonal);
      const double rough = rough_reciprocal(value), slip = fma(-value, rough, 1.0);
      const double sign = copysign(of.root, -diagonal);
      const double r = of.across * sign, row = top ? head - r : head;
      // A finished column of X keeps L.
      double left = own > pivot ? row : own == pivot ? value - 1 : 0;
      if (top && i == 0) left = 0;
      left *= rough;
      const double more = fma(slip, slip, slip), factor = fma(left, more, left);
      of.own_over = own == pivot ? fma(rough, more, rough) : of.own_over;
      of.own_sign = own == pivot ? sign : of.own_sign;
      of.own_square = own == pivot ? of.square : of.own_square;
      of.own_head = own == pivot ? diagonal : of.own_head;
      of.square = next_square;
      of.root = reciprocal_root(next_square);
      of.norm = top ? of.root * next_square : 0;
      of.across = next_across;
#pragma unroll
      for (int k = 0; k < kLive; k += 2) {
        const double2 two = down[k / 2];
        e[k] = fma(-two.x, factor, e[k + 1]);
        e[k + 1] = fma(-two.y, factor, e[k + 2]);
      }
      e[kLive] = 0;
      if (top) {
        s.lu_precise[i][own] = own >= pivot ? row : head;  // a finished column holds L
        s.r_precise()[i][own] = r;                         // below the diagonal it is not read
      }
    }
  }
  // From the Gram matrix G and the top rows X: R with LAPACK's signs, and L U = X - R, of which L
  // is the top of V, and V U the rest of the group. Lanes 0 .. 15 hold a column of G each; the
  // others a column of X, one row further down, and are one step behind.
  __device__ __forceinline__ void chain(int group) {
    const bool top = lane >= 16;
    const int own = lane % 16;
    double e[kGroup + 1];
#pragma unroll
    for (int i = 0; i <= kGroup; ++i) {
      e[i] = 0;
      if (!top && i < kGroup) e[i] = of_gram(i, own);
      if (top && i > 0) e[i] = s.top_all[own * kGroup + i - 1];
    }
    if (lane <= kGroup / 2) s.pivots[0][1][lane] = make_double2(0, 0);  // X has no pivot at first
    __syncwarp();
    const double whole = of_gram(own, own);
    Steps of{};
    of.norm = top;  // it has no pivot at first
    steps<kGroup>(0, e, of);
    steps<kGroup / 2>(kGroup / 2, e, of);
    bool fine, good = true;
    if (top) {
      fine = fma(-of.own_head, of.own_head, of.own_square) > kLeastTail * of.own_square;
      s.over_precise[own] = of.own_over;
      s.over[own] = static_cast<float>(of.own_over);
      // (beta - alpha) / beta
      all.taus[group * kGroup + own] = static_cast<float>(fma(-of.own_head, of.own_sign, 1.0));
    } else {
      fine = of.own_head > kLeastPivot * whole && of.own_head > kTinySquare;
      good = of.own_head > kGoodPivot * whole;
    }
    const bool all_zero = __all_sync(~0u, whole == 0);
    fine = __all_sync(~0u, fine);
    good = __all_sync(~0u, good);
    if (lane == 0)
      all.quality = all_zero ? Quality::zero
                    : !fine  ? Quality::bad
                    : good   ? Quality::good
                             : Quality::precise;
  }

  // --- V of the group ---

  // To the products of this panel and to the image that the next one and the other columns take.
  __device__ __forceinline__ void emit_halves(int group, int row, const float (&v)[kGroup]) {
    const int place = place_of_row(row);
#pragma unroll
    for (int piece = 0; piece < 2; ++piece) {
      uint4 high, low;
      const float* x = v + piece * 8;
      split(x[0] * kRaise, x[1] * kRaise, high.x, low.x);
      split(x[2] * kRaise, x[3] * kRaise, high.y, low.y);
      split(x[4] * kRaise, x[5] * kRaise, high.z, low.z);
      split(x[6] * kRaise, x[7] * kRaise, high.w, low.w);
      *reinterpret_cast<uint4*>(s.v[0][piece][place]) = high;
      *reinterpret_cast<uint4*>(s.v[1][piece][place]) = low;
      uint4* const to = image + std::int64_t{2 * group + piece} * image_rows + place;
      to[0] = high;
      to[std::int64_t{kPieces} * image_rows] = low;
    }
  }
  // Every thread its row, or its two, one after the other.
  template <typename Visit>
  __device__ __forceinline__ void for_own_rows(Visit visit) const {
    if constexpr (kTall) {
#pragma unroll 1
      for (int row = thread; row < kOwnRows; row += kThreads) visit(row);
    } else {
      visit(thread);
    }
  }
  // x U = row of the panel.
  template <typename Real>
  __device__ __forceinline__ void solve_rows(int group, const Real (*u)[kGroup],
                                             const Real (&over)[kGroup]) {
    for_own_rows([&](int row) { solve_row(group, row, u, over); });
  }
  template <typename Real>
  __device__ __forceinline__ void solve_row(int group, int row, const Real (*u)[kGroup],
                                            const Real (&over)[kGroup]) {
    const int c0 = group * kGroup, top = row - first_row(group);
    float v[kGroup];
    if (top < 0) {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) v[k] = 0;
    } else if (rank == 0 && top < kGroup) {
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        v[k] = k < top ? s.lu[top][k] : k == top ? 1.0f : 0.0f;
        own_column(c0 + k)[row] = k < top ? v[k] : s.r[top][k];
      }
    } else {
      Real x[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) x[k] = own_column(c0 + k)[row];
#pragma unroll
      for (int j = 0; j < kGroup; ++j) {
        x[j] *= over[j];
#pragma unroll
        for (int k = j + 1; k < kGroup; ++k) x[k] = fma(-x[j], u[j][k], x[k]);
        v[j] = static_cast<float>(x[j]);
        own_column(c0 + j)[row] = v[j];
      }
    }
    emit_halves(group, row, v);
  }
  // The same from what Householder steps left, of which `count` are reflectors.
  __device__ __forceinline__ void collect_rows(int group, int count) {
    const int c0 = group * kGroup;
    for_own_rows([&](int row) {
      const int top = rank == 0 ? row - first_row(group) : kGroup;
      float v[kGroup];
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        v[k] = top > k ? own_column(c0 + k)[row] : top == k ? 1.0f : 0.0f;
        if (k >= count) v[k] = 0;
      }
      emit_halves(group, row, v);
    });
  }
  // A group of zeros: the identity.
  __device__ __forceinline__ void clear_rows(int group) {
    const float zeros[kGroup] = {};
    for_own_rows([&](int row) { emit_halves(group, row, zeros); });
  }

  // --- the rest of the panel ---

  // V'C of 16 columns over this block's rows; kOwn: the group's own columns.
  template <bool kOwn>
  __device__ __forceinline__ void project(int tile, float raise, float (&c)[2][4]) {
    const int g = lane / 4, t = lane % 4;
    const float* from = own_column(tile * kGroup + g) + 4 * t;
#pragma unroll 1
    for (int part = 0; part < kOwnRows; part += 128) {
      float sums[3][2][4] = {};
#pragma unroll 4
      for (int row = part; row < part + 128; row += 16) {
        std::uint32_t b_high[4], b_low[4], a_high[4], a_low[4];
        load_transposed(b_high, s.v[0][lane / 16][row + lane % 16]);
        load_transposed(b_low, s.v[1][lane / 16][row + lane % 16]);
        if (kOwn) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            a_high[i] = b_high[i % 2 * 2 + i / 2];
            a_low[i] = b_low[i % 2 * 2 + i / 2];
          }
        } else {
          float4 x[2];
#pragma unroll
          for (int h = 0; h < 2; ++h) {
            x[h] = *reinterpret_cast<const float4*>(from + 8 * h * column_step() + row);
            x[h].x *= raise, x[h].y *= raise, x[h].z *= raise, x[h].w *= raise;
          }
          split_rows(x, a_high, a_low);
        }
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          multiply_add(sums[0][n], a_low, b_high[2 * n], b_high[2 * n + 1]);
          multiply_add(sums[1][n], a_high, b_low[2 * n], b_low[2 * n + 1]);
          multiply_add(sums[2][n], a_high, b_high[2 * n], b_high[2 * n + 1]);
        }
      }
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) c[n][e] += sums[0][n][e] + sums[1][n][e] + sums[2][n][e];
    }
  }
  // V'C for every column of the panel, finished ones too, whose products T needs.
  __device__ __forceinline__ void exchange_sums(int group) {
    const int tile = warp, g = lane / 4, t = lane % 4;
    float c[2][4] = {};
    if (tile == group)
      project<true>(tile, 1, c);
    else
      project<false>(tile, tile < group ? kRaise : 1.0f, c);
    const float scale = tile <= group ? 1 / (kRaise * kRaise) : 1 / kRaise;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int column = tile * kGroup + g + 8 * h, owner = columns.owner(column);
      float* to = s.sum_box + ((rank - owner) * columns.size + column) * kGroup + 2 * t;
#pragma unroll
      for (int n = 0; n < 2; ++n)
        send(reinterpret_cast<float2*>(to + n * 8),
             make_float2(c[n][2 * h] * scale, c[n][2 * h + 1] * scale), &all.sum_ready, owner);
    }
    barrier_wait(&all.sum_ready, parity_sum);
    for (int e = thread; e < columns.own * kGroup; e += kThreads) {
      float sum = 0;
#pragma unroll 8
      for (int r = 0; r < ranks; ++r) sum += s.sum_box[r * columns.size * kGroup + e];
      s.sum_box[e] = sum;
    }
    __syncthreads();
    for (int to = warp; to < ranks; to += kWarps)
      for (int e = lane; e < columns.own * kGroup / 4; e += 32)
        send(reinterpret_cast<float4*>(s.sum_all + rank * columns.size * kGroup) + e,
             reinterpret_cast<const float4*>(s.sum_box)[e], &all.sum_done, to);
  }

  // Y = T'W, T^-T = diag(1 / tau) and the products of reflectors below it; a thread a column.
  __device__ __forceinline__ void substitute(int group) {
    const int c0 = group * kGroup;
    if (thread < c0 + kGroup || thread >= kPanel) return;
    float w[kGroup], y[kGroup];
#pragma unroll
    for (int i = 0; i < kGroup; i += 4)
      *reinterpret_cast<float4*>(w + i) =
          *reinterpret_cast<const float4*>(s.sum_all + thread * kGroup + i);
#pragma unroll
    for (int i = 0; i < kGroup; ++i) {
      const float4* products = reinterpret_cast<const float4*>(s.sum_all + (c0 + i) * kGroup);
      float sum = w[i];
#pragma unroll
      for (int l = 0; l < i; l += 4) {
        const float4 four = products[l / 4];
        sum = fmaf(-four.x, y[l], sum);
        if (l + 1 < i) sum = fmaf(-four.y, y[l + 1], sum);
        if (l + 2 < i) sum = fmaf(-four.z, y[l + 2], sum);
        if (l + 3 < i) sum = fmaf(-four.w, y[l + 3], sum);
      }
      y[i] = all.taus[c0 + i] * sum;
    }
    std::uint32_t halves[16];
#pragma unroll
    for (int i = 0; i < 8; ++i) split(y[2 * i], y[2 * i + 1], halves[i], halves[8 + i]);
#pragma unroll
    for (int i = 0; i < 16; i += 4)
      *reinterpret_cast<uint4*>(&s.y[thread - kGroup][i]) =
          make_uint4(halves[i], halves[i + 1], halves[i + 2], halves[i + 3]);
  }
  __device__ __forceinline__ void keep_products(int group) {
    float4* to = reinterpret_cast<float4*>(s.products[block_of_products(0, group)]);
    for (int e = thread; e < (group + 1) * kGroup * kGroup / 4; e += kThreads)
      to[e] = reinterpret_cast<const float4*>(s.sum_all)[e];
  }

  // C -= V Y for the tiles of columns from `first_tile` on; each warp has its own rows.
  __device__ __forceinline__ void update(int first_tile) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll 1
    for (int step = warp; step < kOwnRows / 16; step += kWarps) {
      const int row = step * 16;
      std::uint32_t b_high[4],
          b_low[4];  // rows 0 .. 7: two halves of the reflectors; then the rest
      load_matrices(b_high, s.v[0][lane / 8 % 2][row + lane / 16 * 8 + lane % 8]);
      load_matrices(b_low, s.v[1][lane / 8 % 2][row + lane / 16 * 8 + lane % 8]);
#pragma unroll 2
      for (int tile = first_tile; tile < kPanel / kGroup; ++tile) {
        std::uint32_t a_high[4], a_low[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::uint32_t* y = s.y[(tile - 1) * kGroup + g + i % 2 * 8] + t + i / 2 * 4;
          a_high[i] = y[0];
          a_low[i] = y[8];
        }
        float c[2][4] = {};
#pragma unroll
        for (int n = 0; n < 2; ++n) multiply_add(c[n], a_low, b_high[2 * n], b_high[2 * n + 1]);
#pragma unroll
        for (int n = 0; n < 2; ++n) multiply_add(c[n], a_high, b_low[2 * n], b_low[2 * n + 1]);
#pragma unroll
        for (int n = 0; n < 2; ++n) multiply_add(c[n], a_high, b_high[2 * n], b_high[2 * n + 1]);
        float4* at[2];
        float4 x[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          at[h] = reinterpret_cast<float4*>(own_column(tile * kGroup + g + 8 * h) + row + 4 * t);
          x[h] = *at[h];
        }
        subtract_rows(x, c[0], c[1]);
        *at[0] = x[0];
        *at[1] = x[1];
      }
    }
  }

  // --- Householder steps, for any input ---

  // Two values of every warp to all blocks, and from the first block two heads; waits for all.
  __device__ __forceinline__ int exchange_step(const float (&values)[2], const float (&heads)[2]) {
    const int which = letter & 1, phase = letter / 2 & 1;
    ++letter;
    if (lane < ranks) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int k = warp + kWarps * e;
        send(&s.step_box[which][rank][k], values[e], &all.step_ready[which], lane);
        if (rank == 0) send(&s.step_heads[which][k], heads[e], &all.step_ready[which], lane);
      }
    }
    barrier_wait(&all.step_ready[which], phase);
    return which;
  }
  // The group's columns, two a warp; `count` reflectors.
  __device__ __forceinline__ void householder(int group, int count) {
    constexpr int kQ = kOwnRows / 32;
    const int c0 = group * kGroup, from = lane % 16;
#pragma unroll 1
    for (int j = 0; j < kGroup; ++j) {
      if (j >= count) {
        if (thread == 0) all.taus[c0 + j] = 0;
        continue;
      }
      const int row = lead + c0 + j;  // of the pivot, in the first block
      float x[kQ];
#pragma unroll
      for (int q = 0; q < kQ; ++q)
        x[q] = rank == 0 && q * 32 + lane <= row ? 0.0f : own_column(c0 + j)[q * 32 + lane];
      float undo = 1, scale = 1, square = 0, alpha = 0, along[2], head[2];
      bool nonzero = true;
#pragma unroll 1
      for (int attempt = 0;; ++attempt) {
        float dots[2] = {};
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int k = warp + kWarps * e;
#pragma unroll
          for (int q = 0; q < kQ; ++q)
            dots[e] = fmaf(x[q], k == j ? x[q] : own_column(c0 + k)[q * 32 + lane], dots[e]);
          dots[e] = warp_sum(dots[e]);
          head[e] = own_column(c0 + k)[row];
        }
        const int which = exchange_step(dots, head);
        square = warp_sum_16(from < ranks ? s.step_box[which][from][j] : 0.0f);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          along[e] = warp_sum_16(from < ranks ? s.step_box[which][from][warp + kWarps * e] : 0.0f);
          head[e] = s.step_heads[which][warp + kWarps * e];
        }
        alpha = s.step_heads[which][j];
        __syncthreads();
        if (thread == 0) arm_step(which);
        if (attempt > 0 || !(square < kTinySquare)) break;
        float most = 0;
#pragma unroll
        for (int q = 0; q < kQ; ++q) most = fmaxf(most, fabsf(x[q]));
        most = warp_max(most);
        const int next = exchange_step({most, most}, {0, 0});
        most = warp_max(from < ranks ? s.step_box[next][from][warp] : 0.0f);
        __syncthreads();
        if (thread == 0) arm_step(next);
        nonzero = most != 0;
        if (!nonzero) break;
        const Scale by = scale_for(fmaxf(most, fabsf(alpha)));
        scale = by.to;
        undo = by.back;
#pragma unroll
        for (int q = 0; q < kQ; ++q) x[q] *= scale;
      }
      Reflector r = make_reflector(alpha * scale, square);
      if (!nonzero) r = {alpha, 0, 0};
      if (thread == 0) all.taus[c0 + j] = r.tau;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int k = warp + kWarps * e;
        float* const own = own_column(c0 + k);
        if (k > j) {
          const float w = r.tau * fmaf(r.gamma, along[e], head[e]), by = -w * r.gamma;
#pragma unroll
          for (int q = 0; q < kQ; ++q) {
            float& at = own[q * 32 + lane];
            at = fmaf(by, x[q], at);
            if (rank == 0 && q * 32 + lane == row) at -= w;
          }
        } else if (k == j) {
#pragma unroll
          for (int q = 0; q < kQ; ++q) {
            if (rank != 0 || q * 32 + lane > row) own[q * 32 + lane] = r.gamma * x[q];
            if (rank == 0 && q * 32 + lane == row) own[row] = r.beta * undo;
          }
        }
      }
      __syncthreads();
    }
  }

  // --- T ---

  // T of a group in the place of its products, by 16 lanes: T_ll = tau_l, and T_kl = -tau_l times
  // the sum over s of T_ks (v_s'v_l).
  __device__ __forceinline__ void make_block(int group) {
    if (lane < kGroup) {
      float(&block)[kGroup][kGroup] = s.products[block_of_products(group, group)];
      float row[kGroup];
#pragma unroll
      for (int l = 0; l < kGroup; ++l) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < l; ++i) sum = fmaf(row[i], block[i][l], sum);
        const float tau = all.taus[group * kGroup + l];
        row[l] = l < lane ? 0.0f : l == lane ? tau : -tau * sum;
      }
      __syncwarp(0xffff);
#pragma unroll
      for (int l = 0; l < kGroup; ++l) block[lane][l] = row[l];
    }
    __syncwarp();
  }
  // This block's columns of T, by blocks of 16 rows from the diagonal up: T_I = -T_II (sum over
  // L > I of the products of blocks I and L times T_L). `made`: the groups that have their T_II.
  __device__ __forceinline__ void make_triangle(float* to, std::uint32_t made) {
    if (!(made >> warp & 1)) make_block(warp);
    __syncthreads();
    float(*done)[kGroup] = reinterpret_cast<float(*)[kGroup]>(s.sum_all);  // [row][column]
    float(*sums)[kGroup] = reinterpret_cast<float(*)[kGroup]>(s.sum_box);
    const int share = columns.size, own = columns.own;
    const int i = thread / kGroup, c = thread % kGroup;
    for (int c0 = 0; c0 < own; c0 += kGroup) {
      const int column = min(rank * share + c0 + c, kPanel - 1), last = column / kGroup;
      const int highest = min(rank * share + c0 + kGroup - 1, kPanel - 1) / kGroup;
      const bool mine = c0 + c < own;
      for (int block = kPanel / kGroup - 1; block >= 0; --block) {
        float x =
            block == last ? s.products[block_of_products(block, block)][i][column % kGroup] : 0;
        if (block < highest) {
          float sum = 0;
          for (int l = block + 1; l <= highest; ++l) {
            const float4* products =
                reinterpret_cast<const float4*>(s.products[block_of_products(block, l)][i]);
#pragma unroll
            for (int k = 0; k < kGroup; k += 4) {
              const float4 four = products[k / 4];
              sum = fmaf(four.x, done[l * kGroup + k][c], sum);
              sum = fmaf(four.y, done[l * kGroup + k + 1][c], sum);
              sum = fmaf(four.z, done[l * kGroup + k + 2][c], sum);
              sum = fmaf(four.w, done[l * kGroup + k + 3][c], sum);
            }
          }
          sums[i][c] = sum;
          __syncthreads();
          if (block < last) {
#pragma unroll
            for (int k = 0; k < kGroup; ++k)
              x = fmaf(-s.products[block_of_products(block, block)][i][k], sums[k][c], x);
          }
        }
        done[block * kGroup + i][c] = x;
        if (mine) to[(block * kGroup + i) * kPanel + column] = x;
        __syncthreads();
      }
    }
  }
};

template <bool kTall>
__global__ void __launch_bounds__(kThreads, 1)
    factor_panel(float* x, float* h, float* tau, const std::uint16_t* image_before,
                 const float* triangle_before, std::uint16_t* y_before, std::uint16_t* image,
                 float* triangle, const float* backs, Step s) {
  extern __shared__ float4 shared_memory[];
  let_next_start();
  constexpr int kOwnRows = PanelMemory<kTall>::kOwnRows;
  SharedMemory<kTall>& memory = *reinterpret_cast<SharedMemory<kTall>*>(shared_memory);
  const int thread = threadIdx.x, warp = uniform(thread / 32), lane = thread % 32;
  const int lead = s.first > 0 && !kTall ? kPanel : 0, rank = cluster_rank(),
            ranks = cluster_size();
  const std::int64_t matrix = blockIdx.x / ranks;
  const int begin = s.first - lead + rank * kOwnRows;  // my first row
  const int rows = s.m - begin, columns = min(kPanel, s.n - s.first);
  const int reflectors = min(columns, s.m - s.first);
  const int padded = (s.m + kTile - 1) / kTile * kTile - begin;
  float* const x_from = x + (matrix * s.columns_all + s.first) * s.stride + begin;
  image += (matrix * 2 * kPieces * s.image_rows + begin) * 8;
  Panel<kTall> panel{memory,
                     memory.panel,
                     x_from,
                     s.stride,
                     thread,
                     warp,
                     lane,
                     rank,
                     ranks,
                     lead,
                     reinterpret_cast<uint4*>(image),
                     s.image_rows,
                     {kGramSize, 2, rank, ranks},
                     {kGroup * kGroup, 4, rank, ranks},
                     {kPanel, 1, rank, ranks},
                     0,
                     0,
                     0};
  image_before += (matrix * 2 * kPieces * s.image_rows + begin) * 8;

  if (thread == 0) {
    barrier_init(&memory.v_ready, 1);
    barrier_init(&memory.before_ready, 1);
    barrier_init(&memory.gram_ready, 1);
    barrier_init(&memory.gram_done, 1);
    barrier_init(&memory.sum_ready, 1);
    barrier_init(&memory.sum_done, 1);
    barrier_init(&memory.step_ready[0], 1);
    barrier_init(&memory.step_ready[1], 1);
    fence_barrier_init();
    barrier_expect(&memory.before_ready, panel.columns.own * kPanel * ranks * 4);
    panel.arm_gram();
    panel.arm_sum();
    panel.arm_step(0);
    panel.arm_step(1);
  }
  if (thread < columns) memory.backs[thread] = backs[matrix * s.n + s.first + thread];
  cluster_sync();  // the barriers of all blocks are ready
  if constexpr (!kTall) {
    if (lead > 0) {
      panel.apply_before(x_from, image_before, triangle_before + matrix * kPanel * kPanel,
                         y_before + matrix * 2 * kPanel * kPanel, s, padded);
    } else {
#pragma unroll 8
      for (int e = thread; e < kPanel * (kRows / 4); e += kThreads) {
        const int j = e / (kRows / 4), row = e % (kRows / 4) * 4;
        float* to = &memory.panel.p[j][row];
        if (row < padded)
          copy_16(to, x_from + std::int64_t{j} * s.stride + row);
        else
          *reinterpret_cast<float4*>(to) = make_float4(0, 0, 0, 0);
      }
      commit_copies();
      wait_copies<0>();
    }
  }
  __syncthreads();
  cluster_sync();  // the places for what the groups send are free

  const auto column_of_h = [&](int j) { return h + (matrix * s.n + s.first + j) * s.m + begin; };
  // Rows that may belong to R.
  const auto top_rows = [&] { return rank == 0 ? min(lead + kPanel, rows) : 0; };
  std::uint32_t made = 0;  // groups that have T_II
#pragma unroll 1
  for (int group = 0; group < kPanel / kGroup; ++group) {
    const int c0 = group * kGroup, count = min(kGroup, reflectors - c0);
    Quality quality = count <= 0 ? Quality::zero : Quality::bad;
    if (kGram != 0 && count == kGroup && s.m - s.first - c0 > kGroup) {
      panel.exchange_gram(group);
      if (warp == kWarps - 1) {
        barrier_wait(&memory.gram_done, panel.parity_gram);
        panel.chain(group);
      } else if (warp == 0 && group > 0) {
        panel.make_block(group - 1);
      }
      if (group > 0) made |= 1u << (group - 1);
      __syncthreads();
      quality = memory.quality;
      memory.panel.lu[thread / kGroup][thread % kGroup] =
          static_cast<float>(memory.panel.lu_precise[thread / kGroup + 1][thread % kGroup]);
      memory.panel.r[thread / kGroup][thread % kGroup] =
          static_cast<float>(memory.panel.r_precise()[thread / kGroup + 1][thread % kGroup]);
      __syncthreads();
      // Of the warp that has waited for both: who arrives again has to have, says synccheck.
      if (thread == kThreads - 32) panel.arm_gram();
      panel.parity_gram ^= 1;
    }
    if (quality == Quality::zero) {
      if (thread < kGroup) memory.taus[c0 + thread] = 0;
      panel.clear_rows(group);
      for (int e = thread; e < kPanel * kGroup; e += kThreads) memory.panel.sum_all[e] = 0;
      __syncthreads();
      panel.keep_products(group);
      __syncthreads();
      cluster_sync();  // all have sent this group's Gram matrix on; its boxes are free
      continue;
    }
    if (quality == Quality::good) {
      panel.solve_rows(group, memory.panel.lu, memory.panel.over);
    } else if (quality == Quality::precise) {
      panel.solve_rows(group, memory.panel.lu_precise + 1, memory.panel.over_precise);
    } else {
      panel.householder(group, count);
      panel.collect_rows(group, count);
    }
    __syncthreads();
    panel.exchange_sums(group);
    barrier_wait(&memory.sum_done, panel.parity_sum);
    panel.parity_sum ^= 1;
    if (thread == 0) panel.arm_sum();
    panel.substitute(group);
    panel.keep_products(group);
    __syncthreads();
    panel.update(group + 1);
    __syncthreads();
  }

  // H and tau. What lies below the rows of R goes at once where that can be.
  show_to_tensor_cores();  // to the copies
  __syncthreads();
  const int above = top_rows(), count = min(kOwnRows, rows);
  if (!kTall && s.m % 4 == 0) {
    if (thread < columns && count > above)
      store_bulk(column_of_h(thread) + above, panel.own_column(thread) + above,
                 (count - above) * 4);
  } else {
    for (int j = warp; j < columns; j += kWarps)
      for (int row = above + lane; row < count; row += 32)
        column_of_h(j)[row] = panel.own_column(j)[row];
  }
  for (int j = rank == 0 ? warp : columns; j < columns; j += kWarps)
    for (int row = lane; row < above; row += 32)
      column_of_h(j)[row] = panel.own_column(j)[row] * (row <= lead + j ? memory.backs[j] : 1.0f);
  if (rank == 0 && thread < reflectors)
    tau[matrix * s.reflectors + s.first + thread] = memory.taus[thread];
  triangle += matrix * kPanel * kPanel;
  panel.make_triangle(triangle, made);
  wait_bulk();
  cluster_sync();  // the memory of a block stays while others may send to it
}

// --- scales ---

// X = A with every column's largest element brought to 8 .. 16, padded with zeros; a block a column
// from `first_column` on.
template <int kOwn>
__global__ void __launch_bounds__(kThreads)
    copy_scaled(const float* a, float* x, float* backs, Step s, int first_column) {
  __shared__ float largest[kWarps];
  const std::int64_t matrix = blockIdx.y;
  const int j = first_column + blockIdx.x;
  float* to = x + (matrix * s.columns_all + j) * s.stride;
  const float* from = a + (matrix * s.n + j) * s.m;
  float column[kOwn], most = 0;
#pragma unroll
  for (int q = 0; q < kOwn; ++q) {
    const int row = q * kThreads + threadIdx.x;
    column[q] = j < s.n && row < s.m ? from[row] : 0.0f;
  }
#pragma unroll
  for (int q = 0; q < kOwn; ++q) most = fmaxf(most, fabsf(column[q]));
  most = warp_max(most);
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = most;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kWarps; ++i) most = fmaxf(most, largest[i]);
  Scale scale{1, 1};
  if (most > 0 && most <= 0x1.fffffep127f) {
    scale = scale_for(most);
    if (scale.to <= 0x1p123f && scale.back <= 0x1p126f) scale = {scale.to * 8, scale.back / 8};
  }
#pragma unroll
  for (int q = 0; q < kOwn; ++q) {
    const int row = q * kThreads + threadIdx.x;
    if (row < s.stride) to[row] = column[q] * scale.to;
  }
  if (threadIdx.x == 0 && j < s.n) backs[matrix * s.n + j] = scale.back;
}

// --- the rest of the matrix: W' = X'V, Y = T'W, X -= V Y ---

constexpr int kLong = 64;                     // rows that are multiplied at a time
constexpr int kLongPiece = (kLong + 1) * 16;  // bytes; pieces lie on different banks
constexpr int kLongBytes = 2 * kPieces * kLongPiece;
// V is brought four parts ahead, so that the two warpgroups need not keep step.
constexpr int kProjectStages = 6, kAhead = 4;
constexpr int kProjectBytes = kProjectStages * (kLongBytes + 16);

// For 128 columns from `first_column` on and `slab` rows of them.
__global__ void __launch_bounds__(kThreads, 1)
    project_columns(const float* x, const std::uint16_t* image, float* w, Step s, int first_column,
                    int columns, int slab) {
  extern __shared__ float4 shared_memory[];
  let_next_start();
  char* memory = reinterpret_cast<char*>(shared_memory);
  std::uint64_t* full = reinterpret_cast<std::uint64_t*>(memory + kProjectStages * kLongBytes);
  std::uint64_t* empty = full + kProjectStages;
  const int thread = threadIdx.x, warp = uniform(thread / 32), lane = thread % 32, g = lane / 4,
            t = lane % 4;
  const std::int64_t matrix = blockIdx.z;
  const int padded = (s.m - s.first + kTile - 1) / kTile * kTile;
  const int begin = blockIdx.y * slab, parts = (min(padded, begin + slab) - begin) / kLong;
  if (thread == 0) {
#pragma unroll
    for (int i = 0; i < kProjectStages; ++i) {
      barrier_init(full + i, 1);
      barrier_init(empty + i, kWarps);
    }
    fence_barrier_init();
  }
  __syncthreads();
  image += ((matrix * 2 * kPieces + lane) * s.image_rows + s.first + begin) * 8;
  const auto fetch = [&](int part) {
    if (part >= parts) return;
    const int stage = part % kProjectStages, round = part / kProjectStages;
    if (round > 0) barrier_wait(empty + stage, (round - 1) & 1);
    if (lane == 0) barrier_expect(full + stage, 2 * kPieces * kLong * 16);
    __syncwarp();
    copy_bulk(memory + stage * kLongBytes + lane * kLongPiece,
              image + std::int64_t{part} * kLong * 8, kLong * 16, full + stage);
  };
  if (warp == 0)
    for (int part = 0; part < kAhead; ++part) fetch(part);
  const int column = warp * 16 + g;
  const float* x_at =
      x + (matrix * s.columns_all + first_column + blockIdx.x * kTile + column) * s.stride +
      s.first + begin + 4 * t;
  float4 next[kLong / 16][2];
  load_rows(next, x_at, s.stride, kLong);
  float sums[16][4] = {}, part_sums[16][4];
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
    const int stage = part % kProjectStages, round = part / kProjectStages;
    const std::uint64_t v = operand(shared_address(memory + stage * kLongBytes), 128, kLongPiece);
    constexpr int kLow = kPieces * kLongPiece / 16;
    std::uint32_t high[kLong / 16][4], low[kLong / 16][4];
#pragma unroll
    for (int k = 0; k < kLong / 16; ++k) split_rows(next[k], high[k], low[k]);
    if (part + 1 < parts) load_rows(next, x_at + (part + 1) * kLong, s.stride, kLong);
    if (warp == 0) fetch(part + kAhead);
    barrier_wait(full + stage, round & 1);
    begin_wide();
#pragma unroll
    for (int k = 0; k < kLong / 16; ++k) {
      multiply_wide<1>(part_sums, low[k], v + k * 16, k > 0 || part % 2 > 0);
      multiply_wide<1>(part_sums, high[k], v + kLow + k * 16, 1);
      multiply_wide<1>(part_sums, high[k], v + k * 16, 1);
    }
    end_wide();
    // Who arrives again has to have waited, says synccheck; this phase is over.
    if (lane == 0 && round > 0) barrier_wait(empty + stage, (round - 1) & 1);
    wait_wide<0>();
    if (lane == 0) barrier_arrive(empty + stage);
    // The accumulation cuts: not too many terms in one sum.
    if (part % 2 == 1 || part == parts - 1) {
#pragma unroll
      for (int j = 0; j < 16; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[j][e] += part_sums[j][e];
    }
  }
  float* to = w + ((matrix * gridDim.y + blockIdx.y) * columns + blockIdx.x * kTile) * kPanel;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int j = 0; j < 16; ++j)
      *reinterpret_cast<float2*>(to + (column + half * 8) * kPanel + j * 8 + 2 * t) =
          make_float2(sums[j][2 * half], sums[j][2 * half + 1]);
}

constexpr int kTurned = 32;  // columns of a block
constexpr int kTurnStride = kPanel + 4;
constexpr int kTurnBytes = (kPanel * kPanel + kTurned * kTurnStride) * 4;

// Sums the slabs of W and applies T'.
__global__ void __launch_bounds__(kThreads)
    turn_columns(const float* w, const float* triangle, std::uint16_t* y, int columns, int slabs) {
  extern __shared__ float4 shared_memory[];
  constexpr int kOwn = kTurned * kPanel / kThreads;
  float* t = reinterpret_cast<float*>(shared_memory);
  float* in = t + kPanel * kPanel;  // [column][reflector]
  const int thread = threadIdx.x;
  const std::int64_t matrix = blockIdx.y;
  const int first = blockIdx.x * kTurned;
  for (int e = thread; e < kPanel * kPanel / 4; e += kThreads)
    copy_16(t + e * 4, triangle + matrix * kPanel * kPanel + e * 4);
  commit_copies();
  let_next_start();
  wait_for_previous();
#pragma unroll
  for (int e = thread; e < kTurned * kPanel / 4; e += kThreads) {
    const int j = e / (kPanel / 4), at = e % (kPanel / 4) * 4;
    const float* from = w + (matrix * slabs * columns + first + j) * kPanel + at;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int slab = 0; slab < slabs; ++slab) {
      const float4 part =
          __ldcg(reinterpret_cast<const float4*>(from + std::int64_t{slab} * columns * kPanel));
      sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    sum.x /= kRaise, sum.y /= kRaise, sum.z /= kRaise, sum.w /= kRaise;
    *reinterpret_cast<float4*>(in + j * kTurnStride + at) = sum;
  }
  wait_copies<0>();
  __syncthreads();

  const int i = thread % kPanel, j0 = thread / kPanel * kOwn;
  float result[kOwn] = {};
#pragma unroll 2
  for (int l = 0; l < (i | 31) + 1; l += 4) {
    float factor[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) factor[e] = t[(l + e) * kPanel + i];
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      const float4 four = *reinterpret_cast<const float4*>(in + (j0 + j) * kTurnStride + l);
      result[j] = fmaf(factor[0], four.x, result[j]);
      result[j] = fmaf(factor[1], four.y, result[j]);
      result[j] = fmaf(factor[2], four.z, result[j]);
      result[j] = fmaf(factor[3], four.w, result[j]);
    }
  }
  // Tile by tile of 128 columns: [high, low][piece][column][8].
  y += (matrix * columns + first / kTile * kTile) * 2 * kPanel +
       (i / 8 * kTile + first % kTile + j0) * 8 + i % 8;
#pragma unroll
  for (int j = 0; j < kOwn; ++j) {
    std::uint32_t high, low;
    split(result[j], 0, high, low);
    y[j * 8] = static_cast<std::uint16_t>(high);
    y[kTile * kPanel + j * 8] = static_cast<std::uint16_t>(low);
  }
}

constexpr int kImageTile = 2 * kPanel * kTile * 2;  // bytes of V or Y of a tile
constexpr int kUpdateBytes = 3 * kImageTile + 64;
// A ninth warp brings V; the two warpgroups need not keep step.
constexpr int kUpdateThreads = kThreads + 32;

// 128 columns and `tiles` tiles of 128 rows, one after the other.
__global__ void __launch_bounds__(kUpdateThreads, 1)
    update_columns(float* x, float* h, const std::uint16_t* image, const std::uint16_t* y_from,
                   const float* backs, Step s, int first_column, int columns, int tiles) {
  extern __shared__ float4 shared_memory[];
  char* memory = reinterpret_cast<char*>(shared_memory);
  char* v_memory = memory + kImageTile;
  std::uint64_t* full = reinterpret_cast<std::uint64_t*>(memory + 3 * kImageTile);
  std::uint64_t *empty = full + 2, *y_ready = full + 4;
  const int thread = threadIdx.x, warp = uniform(thread / 32), lane = thread % 32, g = lane / 4,
            t = lane % 4;
  const std::int64_t matrix = blockIdx.z;
  const int padded = (s.m - s.first + kTile - 1) / kTile, column0 = blockIdx.y * kTile;
  const int begin = blockIdx.x * tiles, end = min(padded, begin + tiles);
  if (thread == 0) {
    barrier_init(full, 1);
    barrier_init(full + 1, 1);
    barrier_init(empty, kWarps);
    barrier_init(empty + 1, kWarps);
    barrier_init(y_ready, 1);
    fence_barrier_init();
  }
  __syncthreads();
  let_next_start();
  if (warp == kWarps) {
    image += ((matrix * 2 * kPieces + lane) * s.image_rows + s.first) * 8;
    for (int tile = begin; tile < end; ++tile) {
      const int stage = (tile - begin) % 2, round = (tile - begin) / 2;
      if (round > 0) barrier_wait(empty + stage, (round - 1) & 1);
      if (lane == 0) barrier_expect(full + stage, kImageTile);
      __syncwarp();
      copy_bulk(v_memory + stage * kImageTile + lane * kTile * 16,
                image + std::int64_t{tile} * kTile * 8, kTile * 16, full + stage);
      // V and X are older than what the kernel before this one computes; Y is not.
      if (tile == begin) {
        wait_for_previous();
        if (lane == 0) {
          barrier_expect(y_ready, kImageTile);
          copy_bulk(memory, y_from + (matrix * columns + column0) * 2 * kPanel, kImageTile,
                    y_ready);
        }
      }
    }
    return;
  }

  const int column = first_column + column0 + warp * 16 + g;
  float* x_at = x + (matrix * s.columns_all + column) * s.stride + s.first + 4 * t;
  const std::uint64_t y = operand(shared_address(memory) + warp / 4 * 64 * 16, kTile * 16, 128);
  constexpr int kLow = kPieces * kTile;
  barrier_wait(y_ready, 0);
#pragma unroll 1
  for (int tile = begin; tile < end; ++tile) {
    const int stage = (tile - begin) % 2, round = (tile - begin) / 2;
    barrier_wait(full + stage, round & 1);
    const std::uint64_t v = operand(shared_address(v_memory + stage * kImageTile), kTile * 16, 128);
    float sums[16][4];
    begin_wide();
#pragma unroll
    for (int k = 0; k < kPanel / 16; ++k) {
      const int at = 2 * k * kTile;
      multiply_wide(sums, y + kLow + at, v + at, k > 0);
      multiply_wide(sums, y + at, v + kLow + at, 1);
      multiply_wide(sums, y + at, v + at, 1);
    }
    end_wide();
    float4 own[8][2];
    load_rows(own, x_at + tile * kTile, s.stride, kTile);
    // Who arrives again has to have waited, says synccheck; this phase is over.
    if (lane == 0 && round > 0) barrier_wait(empty + stage, (round - 1) & 1);
    wait_wide<0>();
    if (lane == 0) barrier_arrive(empty + stage);
#pragma unroll
    for (int j = 0; j < 8; ++j) subtract_rows(own[j], sums[2 * j], sums[2 * j + 1]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = column + half * 8;
      if (tile > 0) {
        float* to = x_at + std::int64_t{half} * 8 * s.stride + tile * kTile;
#pragma unroll
        for (int j = 0; j < 8; ++j) *reinterpret_cast<float4*>(to + j * 16) = own[j][half];
      } else if (at < s.n) {
        // The rows of the panel's own reflectors are rows of R now.
        const float back = backs[matrix * s.n + at];
        const int row = s.first + 4 * t;
        float* r = h + (matrix * s.n + at) * s.m + row;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          if (row + j * 16 < s.m) r[j * 16] = own[j][half].x * back;
          if (row + j * 16 + 1 < s.m) r[j * 16 + 1] = own[j][half].y * back;
          if (row + j * 16 + 2 < s.m) r[j * 16 + 2] = own[j][half].z * back;
          if (row + j * 16 + 3 < s.m) r[j * 16 + 3] = own[j][half].w * back;
        }
      }
    }
  }
}

// --- the plan ---

// What a panel leaves for the columns behind it; two take turns.
struct Work {
  kbeam::DevicePointer<std::uint16_t> image{};
  kbeam::DevicePointer<float> triangle{};
};

struct Job {
  kbeam::Plan& plan;
  // Of the matrices in hand.
  kbeam::DevicePointer<const float> a;
  kbeam::DevicePointer<float> h, tau;
  int batch;
  Step shape;
  kbeam::DevicePointer<float> x{}, backs{}, w{};
  kbeam::DevicePointer<std::uint16_t> y{}, y_near{};
  Work works[2]{};
};
struct Columns {
  int first, count;
};

int rounded_up(int value, int to) {
  return (value + to - 1) / to * to;
}

// Blocks of a panel's cluster. Never one: there the addresses of other blocks are none, as memcheck
// has it, and a block without rows does no harm.
int ranks_of(int rows, int rows_of_block) {
  return std::max(2, (rows + rows_of_block - 1) / rows_of_block);
}

kbeam::Node plan_copy(Job& job, const Columns& columns, const kbeam::After& after) {
  auto* kernel = job.shape.stride <= 8 * kThreads    ? copy_scaled<8>
                 : job.shape.stride <= 16 * kThreads ? copy_scaled<16>
                                                     : copy_scaled<34>;
  return job.plan.launch(kernel,
                         {.grid = {columns.count, job.batch}, .block = kThreads, .after = after},
                         job.a, job.x, job.backs, job.shape, columns.first);
}

// How many of `count` tiles of rows a block takes, so that the last blocks to start end early:
// `others` blocks for each, `processors` blocks at once, `extra` tiles' worth of time to begin one.
int choose_tiles(int count, int others, int processors, double extra) {
  int best = 1;
  double least = 1e30;
  for (int tiles = 1; tiles <= kMostTiles; ++tiles) {
    const int blocks = (count + tiles - 1) / tiles * others;
    const double cost = (blocks + processors - 1) / processors * (tiles + extra);
    if (cost < least) least = cost, best = tiles;
  }
  return best;
}

// Runs between a panel's start and the kernels beside it, so that the panel has its processors
// first.
__global__ void pause() {
  __nanosleep(500);
}

// Applies a panel to the columns beyond the next one, beside `busy` blocks of the next panel.
kbeam::Node plan_update(Job& job, const Work& work, const Step& s, const Columns& columns,
                        const kbeam::After& after, int busy) {
  const int tiles = rounded_up(s.m - s.first, kTile) / kTile, across = columns.count / kTile;
  const int processors = std::max(1, job.plan.device().multiprocessors - busy);
  const int slab = choose_tiles(tiles, across * job.batch, processors, 1.0);
  const int together = choose_tiles(tiles, across * job.batch, processors, 1.0);
  const int slabs = (tiles + slab - 1) / slab;
  job.plan.launch(project_columns,
                  {.grid = {across, slabs, job.batch},
                   .block = kThreads,
                   .shared_bytes = kProjectBytes,
                   .after = after},
                  job.x, work.image, job.w, s, columns.first, columns.count, slab * kTile);
  job.plan.launch(turn_columns,
                  {.grid = {columns.count / kTurned, job.batch},
                   .block = kThreads,
                   .shared_bytes = kTurnBytes,
                   .overlap_previous = true},
                  job.w, work.triangle, job.y, columns.count, slabs);
  return job.plan.launch(update_columns,
                         {.grid = {(tiles + together - 1) / together, across, job.batch},
                          .block = kUpdateThreads,
                          .shared_bytes = kUpdateBytes,
                          .overlap_previous = true},
                         job.x, job.h, work.image, job.y, job.backs, s, columns.first,
                         columns.count, together);
}

// The panel from s.first on, after the one before it: `work` takes its V and T, `before` has those
// of the other.
kbeam::Node plan_panel(Job& job, const Step& s, const Work& work, const Work& before,
                       const kbeam::After& after, int ranks, bool tall) {
  constexpr std::int64_t kBytes[2] = {sizeof(SharedMemory<false>), sizeof(SharedMemory<true>)};
  return job.plan.launch(tall ? factor_panel<true> : factor_panel<false>,
                         {.grid = job.batch * ranks,
                          .block = kThreads,
                          .cluster = {ranks, 1},
                          .shared_bytes = kBytes[tall],
                          .after = after},
                         job.x, job.h, job.tau, before.image, before.triangle, job.y_near,
                         work.image, work.triangle, job.backs, s);
}

// Returns what has to be done for all to be done.
kbeam::After plan_panels(Job& job, const kbeam::After& start) {
  Step& shape = job.shape;
  Work(&works)[2] = job.works;
  kbeam::Node last = plan_copy(job, {0, kPanel}, start), panel = last;
  Step before = shape;
  for (int index = 0; index * kPanel < shape.reflectors; ++index) {
    Step s = shape;
    s.first = index * kPanel;
    const int lead = index > 0 ? kPanel : 0;
    const bool tall = s.m - s.first + lead > kMostRanks * kRows;
    const int ranks = ranks_of(s.m - s.first + (tall ? 0 : lead), tall ? kTallRows : kRows);
    const Work &work = works[index % 2], &other = works[1 - index % 2];
    kbeam::After ready = last.id == panel.id ? kbeam::After{last} : kbeam::After{panel, last};
    // What stays in memory takes the panel before as other columns do.
    if (tall && index > 0) ready = {plan_update(job, other, before, {s.first, kPanel}, ready, 0)};
    panel = plan_panel(job, s, work, other, ready, ranks, tall);
    const Columns rest{s.first + kPanel, shape.columns_all - s.first - kPanel};
    kbeam::After begin{panel};
    if (rest.count > 0 && kOverlap != 0)
      begin = {job.plan.launch(pause, {.grid = 1, .block = 32, .after = ready})};
    last = panel;
    if (rest.count > 0 && index == 0) last = plan_copy(job, rest, begin);
    if (rest.count > 0 && index > 0)
      last = plan_update(job, other, before, rest, begin, kOverlap != 0 ? job.batch * ranks : 0);
    before = s;
  }
  const kbeam::After done = last.id == panel.id ? kbeam::After{last} : kbeam::After{panel, last};
  const int first = before.first + kPanel;
  if (first == shape.columns_all) return done;
  return {plan_update(job, works[before.first / kPanel % 2], before,
                      {first, shape.columns_all - first}, done, 0)};
}

// As many matrices at a time as fit in some memory; all, unless they are many.
void plan_matrices(Job& job) {
  constexpr std::int64_t kMostBytes = std::int64_t{8} << 30;
  constexpr std::int64_t kMostMatrices = 65535;  // of a grid
  Step& shape = job.shape;
  const int rows = rounded_up(shape.m, kTile);
  shape.stride = shape.m > kMostRanks * kRows ? rows + kTallRows : rows;
  shape.columns_all = rounded_up(shape.n, kTile);
  shape.image_rows = rows + kTallRows;
  const std::int64_t x = std::int64_t{shape.columns_all} * shape.stride;
  const std::int64_t w = std::int64_t{shape.columns_all} * rows;  // kPanel / kTile of each row
  const std::int64_t image = std::int64_t{2} * kPanel * shape.image_rows;
  const std::int64_t all = job.batch;
  const std::int64_t together =
      std::min({all, kMostMatrices, std::max<std::int64_t>(1, kMostBytes / (4 * (x + w + image)))});
  job.x = job.plan.scratch<float>(together * x);
  job.backs = job.plan.scratch<float>(together * shape.n);
  job.w = job.plan.scratch<float>(together * w);
  job.y = job.plan.scratch<std::uint16_t>(together * shape.columns_all * kPanel * 2);
  job.y_near = job.plan.scratch<std::uint16_t>(together * kPanel * kPanel * 2);
  for (Work& work : job.works)
    work = {job.plan.scratch<std::uint16_t>(together * image),
            job.plan.scratch<float>(together * kPanel * kPanel)};
  kbeam::After start = kbeam::at_start();
  for (std::int64_t first = 0; first < all; first += together) {
    job.batch = static_cast<int>(std::min(together, all - first));
    start = plan_panels(job, start);
    const std::int64_t elements = job.batch * std::int64_t{shape.m} * shape.n;
    job.a = job.a + elements;
    job.h = job.h + elements;
    job.tau = job.tau + std::int64_t{job.batch} * shape.reflectors;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto h = args.output<float>("H"), tau = args.output<float>("tau");
  const int m = static_cast<int>(a.dim(1)), n = static_cast<int>(a.dim(2));
  Job job{.plan = plan,
          .a = a,
          .h = h,
          .tau = tau,
          .batch = static_cast<int>(a.dim(0)),
          .shape = {m, n, std::min(m, n), 0, 0, 0, 0}};
  if (m > kMostRanks * kTallRows)
    plan.not_supported("more rows than a cluster takes");
  else
    plan_matrices(job);
}
