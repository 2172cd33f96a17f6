// Blocked Householder QR for large matrices: a cluster holds a panel of 64 or 128 columns and gets
// its reflectors from the FP64 Gram matrix and the top rows, without a loop over long columns. A
// panel whose pivots are too small takes Householder steps instead. Updates are FP16 halves, three
// products each. Not tuned below 1000 rows.
#include <cuda_fp16.h>
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kGram, 1, 0, 1);             // 0: Householder steps in every panel
KBEAM_KNOB(int, kOverlap, 1, 0, 1);          // far updates run beside the next panel
KBEAM_KNOB(int, kFarSlab, 1024, 512, 1024);  // rows that one block projects, far from the panel
KBEAM_KNOB(int, kFarTiles, 8, 4, 8, 16);     // tiles of rows that one block updates
KBEAM_KNOB(int, kNearSlab, 128, 128, 256);   // the same for the columns of the next panel

namespace {

constexpr int kHalf = 64;  // columns that are factored together
constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kTile = 128;  // rows and columns of an update tile

// A sum of squares below this may have lost something to underflow; then the column is scaled
// again and summed anew.
constexpr float kTinySquare = 0x1p-90f;
// What may be left of a column's square inside a panel, and of a pivot's square below the diagonal,
// for the Gram matrix to be trusted.
constexpr double kLeastPivot = 1e-9, kLeastTail = 1e-9;
// Brings typical elements of V near 1, so that the low half keeps its bits.
constexpr float kRaise = 0x1p6f;

struct Step {
  int m, n;         // of the matrix; m is the leading dimension of H
  int reflectors;   // of the matrix
  int stride;       // leading dimension of X, whose rows and columns are padded with zeros
  int columns_all;  // of X
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
__device__ __forceinline__ void store_remote(std::uint32_t to, float4 x) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(x.x), "f"(x.y),
               "f"(x.z), "f"(x.w)
               : "memory");
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
// 1 / x to about 2^-50 for normal x.
__device__ __forceinline__ double reciprocal(double x) {
  double r;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(x));
  const double e = fma(-x, r, 1.0);
  return fma(r, fma(e, e, e), r);
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
// A barrier of the first half of the panel's threads.
__device__ __forceinline__ void half_barrier() {
  asm volatile("bar.sync 1, 256;" ::: "memory");
}
// c (+)= a b on a warpgroup, 64 x 128 x 16: a as the fragments of its four warps, or in shared
// memory as b is: rows of 64 halves along the sum, in 16-byte pieces that are exchanged by the row
// modulo 8.
__device__ __forceinline__ void multiply_wide(float (&c)[16][4], const std::uint32_t (&a)[4],
                                              std::uint64_t b, int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, p, 1, 1, 0;\n}"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
        "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]),
        "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
        "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]),
        "+f"(c[11][3]), "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]),
        "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]),
        "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]),
        "+f"(c[15][2]), "+f"(c[15][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
}
__device__ __forceinline__ void multiply_wide(float (&c)[16][4], std::uint64_t a, std::uint64_t b,
                                              int add) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, "
      "%56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, p, 1, 1, 0, 0;\n}"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]),
        "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]),
        "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]), "+f"(c[4][0]), "+f"(c[4][1]),
        "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]),
        "+f"(c[7][2]), "+f"(c[7][3]), "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]),
        "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]),
        "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]),
        "+f"(c[11][3]), "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]),
        "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]),
        "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]),
        "+f"(c[15][2]), "+f"(c[15][3])
      : "l"(a), "l"(b), "r"(add));
}
__device__ __forceinline__ std::uint64_t operand(std::uint32_t address) {
  return static_cast<std::uint64_t>((address & 0x3ffff) >> 4) | std::uint64_t{1} << 16 |
         std::uint64_t{64} << 32 | std::uint64_t{1} << 62;
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

// --- the panel: a cluster a matrix ---

constexpr int kPanelThreads = 512, kPanelWarps = kPanelThreads / 32;
// Tiles of 16 x 8 of a Gram matrix that hold anything on or above the diagonal, 16 rows after 16.
constexpr int kGramSize = 20 * 128, kCrossSize = kHalf * kHalf;
constexpr int kWide = kHalf + 1;  // stride of small matrices
constexpr int kSpareAt = 2 * kHalf * kWide * 8;
constexpr int kWorkBytes = kSpareAt + 32 * 32 * 8;
constexpr int kLetters = 10 * kHalf;

template <int kRows>
constexpr int kColumn = kRows + 4;  // floats from one column of the panel to the next

template <int kRows, int kHalves>
constexpr int kPanelBytes =
    kHalves* kHalf* kColumn<kRows> * 4 + kWorkBytes + kLetters * 8 + kHalf* kWide * 4 + kHalf * 4;

template <int kRows, int kHalves>
struct Panel {
  float* p;         // [column][row]
  char* work;       // what a phase needs
  double* letters;  // rows and columns that are published in the chain
  float* triangle;  // T of the half in hand, by rows
  float* taus;
  int thread, warp, lane, rank, ranks;

  __device__ __forceinline__ float* column(int j) const { return p + j * kColumn<kRows>; }

  // Sums `count` values over the two parts of every block of the cluster; everyone gets all of
  // them at the start of `work`, or, with kToOwner, block r writes its share to `to`. The same bits
  // everywhere.
  template <typename T, int kCount, bool kToOwner>
  __device__ __forceinline__ T* all_reduce(T* to) {
    T* parts = reinterpret_cast<T*>(work);
    T* box = parts + 2 * kCount;
    constexpr int kVector = 16 / sizeof(T);
    const int share = (kCount / kVector + ranks - 1) / ranks;  // vectors
    cluster_sync();  // the parts are complete, and nobody uses the memory of the letters
    const std::uint32_t box_address = shared_address(box);
    for (int e = thread; e < kCount / kVector; e += kPanelThreads) {
      const float4 a = reinterpret_cast<const float4*>(parts)[e];
      const float4 b = reinterpret_cast<const float4*>(parts + kCount)[e];
      const int owner = e / share;
      const float4 sum = add<T>(a, b);
      store_remote(address_in(box_address, owner) + (rank * share + e - owner * share) * 16, sum);
    }
    cluster_sync();
    const int mine = min(share, kCount / kVector - rank * share);
    const std::uint32_t all_address = shared_address(parts);
    for (int e = thread; e < mine; e += kPanelThreads) {
      float4 sum = reinterpret_cast<const float4*>(box)[e];
#pragma unroll 4
      for (int r = 1; r < ranks; ++r)
        sum = add<T>(sum, reinterpret_cast<const float4*>(box)[r * share + e]);
      if constexpr (kToOwner) {
        reinterpret_cast<float4*>(to)[rank * share + e] = sum;
      } else {
        for (int r = 0; r < ranks; ++r)
          store_remote(address_in(all_address, r) + (rank * share + e) * 16, sum);
      }
    }
    if constexpr (!kToOwner) cluster_sync();
    return parts;
  }
  template <typename T>
  static __device__ __forceinline__ float4 add(float4 a, float4 b) {
    if constexpr (sizeof(T) == 4) return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    const double2 x = *reinterpret_cast<const double2*>(&a);
    const double2 y = *reinterpret_cast<const double2*>(&b);
    const double2 sum = make_double2(x.x + y.x, x.y + y.y);
    return *reinterpret_cast<const float4*>(&sum);
  }

  // --- products of columns, over this block's rows ---

  // Tile (i, j) of columns a0 + 16 i and b0 + 8 j, over every other run of 16 rows. A warp has four
  // tiles; kUpper: only those that reach the diagonal.
  template <bool kUpper>
  __device__ __forceinline__ void multiply_columns(int a0, int b0, int from, double (&sums)[4][4]) {
    const int i = warp % 8 / 2, j0 = warp % 2 * 4, g = lane / 4, t = lane % 4;
    const float* a_at = column(a0 + 16 * i + g) + t;
    const float* b_at = column(b0 + 8 * j0 + g) + t;
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[j][e] = 0;
    if (kUpper && j0 + 3 < 2 * i) return;
#pragma unroll 1
    for (int row = from + warp / 8 * 16; row < kRows; row += 32) {
      double a[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) a[e] = a_at[e % 2 * 8 * kColumn<kRows> + row + e / 2 * 4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        double b[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) b[e] = b_at[j * 8 * kColumn<kRows> + row + e * 4];
        if (!kUpper || j0 + j >= 2 * i) multiply_add(sums[j], a, b);
      }
    }
  }
  __device__ __forceinline__ void gram(int c0, int from) {
    double sums[4][4];
    multiply_columns<true>(c0, c0, from, sums);
    const int i = warp % 8 / 2, j0 = warp % 2 * 4;
    double* to = reinterpret_cast<double*>(work) + warp / 8 * kGramSize + (9 * i - i * i) * 128;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (j0 + j >= 2 * i) {
        double2* tile = reinterpret_cast<double2*>(to + (j0 + j - 2 * i) * 128);
        tile[lane] = make_double2(sums[j][0], sums[j][1]);
        tile[32 + lane] = make_double2(sums[j][2], sums[j][3]);
      }
  }
  // Element (i, j), i <= j, of the Gram matrix among the tiles.
  static __device__ __forceinline__ double of_gram(const double* tiles, int i, int j) {
    const int row = i / 16, column = j / 8;
    return tiles[(9 * row - row * row + column - 2 * row) * 128 + i % 16 * 8 + j % 8];
  }
  // Columns a0 .. a0 + 63 times columns b0 .. b0 + 63, by rows, into the parts.
  __device__ __forceinline__ void cross(int a0, int b0, int from) {
    double sums[4][4];
    multiply_columns<false>(a0, b0, from, sums);
    float* to = reinterpret_cast<float*>(work) + warp / 8 * kCrossSize;
    const int row = warp % 8 / 2 * 16 + lane / 4, at = warp % 2 * 32 + lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        *reinterpret_cast<float2*>(to + (row + 8 * h) * kHalf + at + j * 8) =
            make_float2(static_cast<float>(sums[j][2 * h]), static_cast<float>(sums[j][2 * h + 1]));
  }

  // --- 64 steps on 64 x 64 ---

  // From the Gram matrix G and the top rows X of the panel: R with LAPACK's signs, L (the top of
  // V), and M, for which the rest of V is the rest of the panel times M. X - R = L U, U = M^-1.
  // Four warps hold G and four hold X, which is one step behind. Afterwards `small` holds M on and
  // above the diagonal and L below it, `r` holds R on and above the diagonal.
  __device__ __forceinline__ bool chain(const double* tiles, const float* top,
                                        std::int64_t top_stride, double* small, double* r) {
    bool good = true;
    if (warp < 4)
      good = steps_of_gram(tiles);
    else if (warp < 8)
      good = steps_of_top(top, top_stride, small, r);
    return __syncthreads_and(good);
  }
  // Published: three rows of G, two rows and two columns of X, roots of pivots, least pivots.
  __device__ __forceinline__ double* row_of_gram(int j) const {
    return letters + (j + 3) % 3 * kHalf;
  }
  __device__ __forceinline__ double* row_of_top(int j) const {
    return letters + (3 + (j & 1)) * kHalf;
  }
  __device__ __forceinline__ double* column_of_top(int j) const {
    return letters + (5 + (j & 1)) * kHalf;
  }
  __device__ __forceinline__ double* roots() const {
    return letters + 7 * kHalf;
  }

  // A thread holds elements (y + 8 a, x + 16 b) on and above the diagonal.
  __device__ __forceinline__ bool steps_of_gram(const double* tiles) {
    const int y = thread / 16, x = thread % 16;
    double g[8][4];
#pragma unroll
    for (int a = 0; a < 8; ++a)
#pragma unroll
      for (int b = a / 2; b < 4; ++b) {
        const int i = y + 8 * a, j = x + 16 * b;
        g[a][b] = of_gram(tiles, min(i, j), max(i, j));
      }
    double* const least = letters + 8 * kHalf;
    if (thread < kHalf) least[thread] = kLeastPivot * of_gram(tiles, thread, thread);
    half_barrier();  // the Gram matrix has been read: its place is free
    if (y == 0) {
#pragma unroll
      for (int b = 0; b < 4; ++b) row_of_gram(0)[x + 16 * b] = g[0][b];
    }
    bool good = true;
    half_barrier();
#pragma unroll
    for (int a0 = 0; a0 < 8; ++a0) {
      constexpr int kLast = 7;
      const int next = a0 < kLast ? a0 + 1 : kLast;
#pragma unroll 1
      for (int at = 0; at < 8; ++at) {
        const int j = a0 * 8 + at;
        const double* row = row_of_gram(j);
        const double square = row[j], over = reciprocal(square);
        double across[4];
#pragma unroll
        for (int b = a0 / 2; b < 4; ++b) across[b] = row[x + 16 * b];
        double down[8];
#pragma unroll
        for (int a = a0; a < 8; ++a) down[a] = row[y + 8 * a];
#pragma unroll
        for (int a = a0; a < 8; ++a) {
          down[a] *= over;
#pragma unroll
          for (int b = a / 2; b < 4; ++b) g[a][b] = fma(-down[a], across[b], g[a][b]);
        }
        double* to = row_of_gram(j + 1) + x;
        if (at < 7) {
          if (y == at + 1) {
#pragma unroll
            for (int b = a0 / 2; b < 4; ++b) to[16 * b] = g[a0][b];
          }
        } else if (y == 0) {
#pragma unroll
          for (int b = next / 2; b < 4; ++b) to[16 * b] = g[next][b];
        }
        if (warp == 3) {
          good = good && square > least[j];
          if (lane == 0) roots()[j] = reciprocal_root(square);
        }
        half_barrier();
      }
    }
    half_barrier();
    return good;
  }

  // A thread holds elements (y + 8 a, x + 16 b). Row j becomes row j of M once its step is done.
  __device__ __forceinline__ bool steps_of_top(const float* top, std::int64_t top_stride,
                                               double* small, double* r) {
    const int y = (thread - 128) / 16, x = thread % 16;
    double c[8][4];
#pragma unroll
    for (int b = 0; b < 4; ++b)
#pragma unroll
      for (int a = 0; a < 8; ++a) c[a][b] = top[(x + 16 * b) * top_stride + y + 8 * a];
    half_barrier();
    bool good = true;
    if (y == 0) {
#pragma unroll
      for (int b = 0; b < 4; ++b) row_of_top(0)[x + 16 * b] = c[0][b];
    }
    if (x == 0) {
#pragma unroll
      for (int a = 0; a < 8; ++a) column_of_top(0)[y + 8 * a] = c[a][0];
    }
    half_barrier();
    half_barrier();  // step 0 of G is done
#pragma unroll
    for (int b0 = 0; b0 < 4; ++b0) {
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        constexpr int kLastRow = 7, kLastColumn = 3;
        const int a0 = b0 * 2 + part;
        const int next = a0 < kLastRow ? a0 + 1 : kLastRow;
        const int next_column = part == 0 ? b0 : b0 < kLastColumn ? b0 + 1 : kLastColumn;
#pragma unroll 1
        for (int at = 0; at < 8; ++at) {
          const int j = a0 * 8 + at;
          const double* row_g = row_of_gram(j);
          const double* row = row_of_top(j);
          const double* column = column_of_top(j);
          const double alpha = row[j], root = roots()[j], square = row_g[j];
          const double sign = alpha < 0 ? root : -root;
          const double pivot = fma(-sign, square, alpha);
          const double inverse = reciprocal(pivot);
          if (warp == 7) {
            good = good && square - alpha * alpha > kLeastTail * square;
            if (lane == 0) taus[j] = static_cast<float>(fabs(pivot) * root);
          }
          // Loads before stores, which the compiler may not exchange.
          double u[4], entries[4], f[8];
#pragma unroll
          for (int b = b0; b < 4; ++b) {
            entries[b] = row_g[x + 16 * b];
            u[b] = row[x + 16 * b];
          }
#pragma unroll
          for (int a = 0; a < 8; ++a) f[a] = column[y + 8 * a];
#pragma unroll
          for (int b = b0; b < 4; ++b) {
            entries[b] *= sign;
            u[b] -= entries[b];
          }
#pragma unroll
          for (int a = 0; a < 8; ++a) {
            f[a] = a == a0 && y == at ? inverse : f[a] * inverse;
#pragma unroll
            for (int b = b0; b < 4; ++b)
              c[a][b] = fma(-f[a], u[b], a == a0 && y == at ? 0.0 : c[a][b]);
          }
          double* to_row = row_of_top(j + 1) + x;
          double* to_column = column_of_top(j + 1) + y;
          if (at < 7) {
            if (y == at + 1) {
#pragma unroll
              for (int b = b0; b < 4; ++b) to_row[16 * b] = c[a0][b];
            }
          } else if (y == 0) {
#pragma unroll
            for (int b = b0; b < 4; ++b) to_row[16 * b] = c[next][b];
          }
          if (at < 7) {
            if (x == (j + 1) % 16) {
#pragma unroll
              for (int a = 0; a < 8; ++a) to_column[8 * a] = c[a][b0];
            }
          } else if (x == (j + 1) % 16) {
#pragma unroll
            for (int a = 0; a < 8; ++a) to_column[8 * a] = c[a][next_column];
          }
          if (x == j % 16) {
#pragma unroll
            for (int a = 0; a < 8; ++a) small[(y + 8 * a) * kWide + j] = f[a];
          }
          if (y == at) {
#pragma unroll
            for (int b = b0; b < 4; ++b) r[j * kWide + x + 16 * b] = entries[b];
          }
          half_barrier();
        }
      }
    }
    return good;
  }

  // The panel's rows from `from` on become V: P M. A warp has its own rows.
  __device__ __forceinline__ void multiply_by_small(int c0, int from, const double* small) {
    const int g = lane / 4, t = lane % 4;
#pragma unroll 1
    for (int base = warp * 16; base < kRows; base += kPanelWarps * 16) {
      if (base < from) continue;
      double sums[8][4] = {};
      float* const at = column(c0) + base + g;
#pragma unroll
      for (int k = 0; k < kHalf; k += 16) {
        double a[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) a[e] = at[(k + e / 2 * 4 + t) * kColumn<kRows> + e % 2 * 8];
#pragma unroll
        for (int j = k / 8; j < 8; ++j) {
          double b[4];
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int row = k + e * 4 + t;
            b[e] = row <= j * 8 + g ? small[row * kWide + j * 8 + g] : 0.0;
          }
          multiply_add(sums[j], a, b);
        }
      }
      __syncwarp();
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          at[(j * 8 + t * 2 + e % 2) * kColumn<kRows> + e / 2 * 8] = static_cast<float>(sums[j][e]);
    }
  }

  // T from T^-1 = -L'(R M), which is diag(1 / tau) and the products of reflectors above it.
  __device__ __forceinline__ void triangle_from_chain(const double* small, double* r) {
    const int g = lane / 4, t = lane % 4, i0 = warp / 4 * 16, j0 = warp % 4 * 16;
    double sums[2][4] = {};
#pragma unroll 1
    for (int k = i0; k < kHalf; k += 16) {
      double a[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int i = i0 + g + e % 2 * 8, l = k + e / 2 * 4 + t;
        a[e] = i <= l ? r[i * kWide + l] : 0.0;
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        double b[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int l = k + e * 4 + t, at = j0 + j * 8 + g;
          b[e] = l <= at ? small[l * kWide + at] : 0.0;
        }
        multiply_add(sums[j], a, b);
      }
    }
    __syncthreads();  // R has been read
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        r[(i0 + g + e / 2 * 8) * kWide + j0 + j * 8 + t * 2 + e % 2] = sums[j][e];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[j][e] = 0;
#pragma unroll 1
    for (int k = i0; k < kHalf; k += 16) {
      double a[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int i = i0 + g + e % 2 * 8, l = k + e / 2 * 4 + t;
        a[e] = i < l ? small[l * kWide + i] : i == l ? 1.0 : 0.0;
      }
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        double b[4];
#pragma unroll
        for (int e = 0; e < 4; ++e) b[e] = r[(k + e * 4 + t) * kWide + j0 + j * 8 + g];
        multiply_add(sums[j], a, b);
      }
    }
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        triangle[(i0 + g + e / 2 * 8) * kWide + j0 + j * 8 + t * 2 + e % 2] =
            static_cast<float>(-sums[j][e]);
    __syncthreads();
    invert_triangle();
  }

  // triangle := its inverse, by blocks of 16, 32, 64.
  __device__ __forceinline__ void invert_triangle() {
    if (warp < 4 && lane < 16) {
      float* block = triangle + warp * 16 * (kWide + 1);
      const float own = reciprocal(block[lane * (kWide + 1)]);
      float x[16];
#pragma unroll
      for (int i = 0; i < 16; ++i) x[i] = i == lane ? 1.0f : 0.0f;
#pragma unroll
      for (int l = 15; l >= 0; --l) {
        x[l] *= __shfl_sync(0xffff, own, l);
#pragma unroll
        for (int i = 0; i < l; ++i) x[i] = fmaf(-block[i * kWide + l], x[l], x[i]);
      }
      __syncwarp(0xffff);
#pragma unroll
      for (int i = 0; i < 16; ++i) block[i * kWide + lane] = x[i];
    }
    __syncthreads();
    join_inverses<16>();
    join_inverses<32>();
    for (int e = thread; e < kHalf * kHalf; e += kPanelThreads)
      if (e / kHalf > e % kHalf) triangle[e / kHalf * kWide + e % kHalf] = 0;
    __syncthreads();
  }
  // The block B above the diagonal between two finished triangles S and T becomes -S B T; what lies
  // below their diagonals is not read.
  template <int kSize>
  __device__ __forceinline__ void join_inverses() {
    constexpr int kAcross = kSize / 8, kTiles = kSize / 16 * kAcross;
    const int g = lane / 4, t = lane % 4;
    const int pair = warp / kTiles, i0 = warp % kTiles / kAcross * 16, j0 = warp % kAcross * 8;
    const bool mine = pair < kHalf / (2 * kSize);
    float* s = triangle + pair * 2 * kSize * (kWide + 1);
    float* block = s + kSize;
    const float* next = s + kSize * (kWide + 1);
    double* spare = reinterpret_cast<double*>(work + kSpareAt) + pair * kSize * kSize;
    const int row = i0 + g, at = j0 + 2 * t;
    if (mine) {
      double sums[4] = {};
#pragma unroll
      for (int k = 0; k < kSize; k += 16) {
        double a[8], b[4];
#pragma unroll
        for (int e = 0; e < 8; ++e) a[e] = block[(row + e % 2 * 8) * kWide + k + e / 2 * 4 + t];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int l = k + e * 4 + t;
          b[e] = l <= j0 + g ? next[l * kWide + j0 + g] : 0.0f;
        }
        multiply_add(sums, a, b);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) spare[(row + e / 2 * 8) * kSize + at + e % 2] = sums[e];
    }
    __syncthreads();
    if (mine) {
      double sums[4] = {};
#pragma unroll
      for (int k = 0; k < kSize; k += 16) {
        double a[8], b[4];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          const int i = row + e % 2 * 8, l = k + e / 2 * 4 + t;
          a[e] = i <= l ? s[i * kWide + l] : 0.0f;
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) b[e] = spare[(k + e * 4 + t) * kSize + j0 + g];
        multiply_add(sums, a, b);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e)
        block[(row + e / 2 * 8) * kWide + at + e % 2] = static_cast<float>(-sums[e]);
    }
    __syncthreads();
  }

  // Columns 64 .. 127 -= V (T' W), W of 64 x 64 by rows.
  __device__ __forceinline__ void update_second_half(const float* w) {
    const int g = lane / 4, t = lane % 4, i0 = warp / 4 * 16, j0 = warp % 4 * 16;
    double* y = reinterpret_cast<double*>(work) + kCrossSize / 2;  // behind W
    {
      double sums[2][4] = {};
#pragma unroll 1
      for (int k = 0; k <= i0; k += 16) {
        double a[8];
#pragma unroll
        for (int e = 0; e < 8; ++e)
          a[e] = triangle[(k + e / 2 * 4 + t) * kWide + i0 + g + e % 2 * 8];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
          double b[4];
#pragma unroll
          for (int e = 0; e < 4; ++e) b[e] = w[(k + e * 4 + t) * kHalf + j0 + j * 8 + g];
          multiply_add(sums[j], a, b);
        }
      }
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e)
          y[(i0 + g + e / 2 * 8) * kWide + j0 + j * 8 + t * 2 + e % 2] = sums[j][e];
    }
    __syncthreads();
#pragma unroll 1
    for (int base = warp * 16; base < kRows; base += kPanelWarps * 16) {
      double sums[8][4] = {};
      float* const at = column(0) + base + g;
#pragma unroll 1
      for (int k = 0; k < kHalf; k += 16) {
        double a[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) a[e] = at[(k + e / 2 * 4 + t) * kColumn<kRows> + e % 2 * 8];
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          double b[4];
#pragma unroll
          for (int e = 0; e < 4; ++e) b[e] = y[(k + e * 4 + t) * kWide + j * 8 + g];
          multiply_add(sums[j], a, b);
        }
      }
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          float& entry = at[(kHalf + j * 8 + t * 2 + e % 2) * kColumn<kRows> + e / 2 * 8];
          entry = static_cast<float>(entry - sums[j][e]);
        }
    }
    __syncthreads();
  }

  // --- Householder steps ---

  // Sends this block's 64 sums (of `sums`) and, from the first block, its heads to every block.
  __device__ __forceinline__ void exchange(const float* sums, float* box, const float* heads_from,
                                           float* heads) {
    const int to = thread / 16, part = thread % 16;
    if (to < ranks) {
      store_remote(address_in(shared_address(box + rank * kHalf), to) + part * 16,
                   reinterpret_cast<const float4*>(sums)[part]);
      if (rank == 0)
        store_remote(address_in(shared_address(heads), to) + part * 16,
                     reinterpret_cast<const float4*>(heads_from)[part]);
    }
    cluster_sync();
  }

  // Columns c0 .. c0 + 63, which begin at row c0 of the panel; `count` reflectors, `rows` rows in
  // this block. Leaves R and V, as LAPACK has them, in the panel, and T. For any input.
  __device__ __forceinline__ void householder(int c0, int count, int rows) {
    constexpr int kQ = kRows / 32, kOwn = kHalf / kPanelWarps;
    float* boxes = reinterpret_cast<float*>(work);  // [parity][rank][64]
    float* heads = boxes + 2 * 16 * kHalf;          // [parity][64]
    float* sums = heads + 2 * kHalf;
    float* row_values = sums + kHalf;
    float* totals = row_values + kHalf;
    const bool top = rank == 0;
    const int used = (rows + 31) / 32;  // registers of a lane that may be nonzero
    for (int e = thread; e < kHalf * kWide; e += kPanelThreads) triangle[e] = 0;
    if (thread < kHalf) taus[thread] = 0;
    cluster_sync();  // every block is ready to receive
    int letter = 0;
#pragma unroll 1
    for (int j = 0; j < count; ++j) {
      const int row = c0 + j;  // of the pivot, in the first block
      float x[kQ];             // the pivot column below it
#pragma unroll
      for (int q = 0; q < kQ; ++q) {
        x[q] = 0;
        if (q < used && !(top && q * 32 + lane <= row)) x[q] = column(c0 + j)[q * 32 + lane];
      }
      float undo = 1, scale = 1, square = 0;
      bool nonzero = true;
      const float* heads_now;
#pragma unroll 1
      for (int attempt = 0;; ++attempt) {
        const int parity = letter++ & 1;
        heads_now = heads + parity * kHalf;
        float dots[kOwn] = {};
#pragma unroll
        for (int q = 0; q < kQ; ++q)
          if (q < used) {
#pragma unroll
            for (int e = 0; e < kOwn; ++e) {
              const int k = warp + kPanelWarps * e;
              dots[e] = fmaf(x[q], k == j ? x[q] : column(c0 + k)[q * 32 + lane], dots[e]);
            }
          }
#pragma unroll
        for (int level = 16; level > 0; level >>= 1)
#pragma unroll
          for (int e = 0; e < kOwn; ++e) dots[e] += __shfl_xor_sync(~0u, dots[e], level);
        if (lane == 0) {
#pragma unroll
          for (int e = 0; e < kOwn; ++e) {
            sums[warp + kPanelWarps * e] = dots[e];
            if (top) row_values[warp + kPanelWarps * e] = column(c0 + warp + kPanelWarps * e)[row];
          }
        }
        __syncthreads();
        float* box = boxes + parity * 16 * kHalf;
        exchange(sums, box, row_values, heads + parity * kHalf);
        if (thread < kHalf) {
          float total = 0;
          for (int from = 0; from < ranks; ++from) total += box[from * kHalf + thread];
          totals[thread] = total;
        }
        __syncthreads();
        square = totals[j];
        if (attempt > 0 || !(square < kTinySquare)) break;
        float most = 0;
#pragma unroll
        for (int q = 0; q < kQ; ++q) most = fmaxf(most, fabsf(x[q]));
        most = warp_max(most);  // the same in every warp
        if (thread < kHalf) sums[thread] = most;
        __syncthreads();
        float* next = boxes + (letter++ & 1) * 16 * kHalf;
        exchange(sums, next, row_values, heads + (parity ^ 1) * kHalf);
        for (int from = 0; from < ranks; ++from) most = fmaxf(most, next[from * kHalf]);
        nonzero = most != 0;
        if (!nonzero) break;
        const Scale s = scale_for(fmaxf(most, fabsf(heads_now[j])));
        scale = s.to;
        undo = s.back;
#pragma unroll
        for (int q = 0; q < kQ; ++q) x[q] *= scale;
      }
      const float alpha = heads_now[j];
      Reflector r = make_reflector(alpha * scale, square);
      if (!nonzero) r = {alpha, 0, 0};
      if (thread == 0) taus[j] = r.tau;
#pragma unroll
      for (int e = 0; e < kOwn; ++e) {
        const int k = warp + kPanelWarps * e;
        float* at = column(c0 + k) + lane;
        const float along = fmaf(r.gamma, totals[k], heads_now[k]);
        if (k > j) {
          const float t = r.tau * along, u = -t * r.gamma;
#pragma unroll
          for (int q = 0; q < kQ; ++q)
            if (q < used) at[q * 32] = fmaf(u, x[q], at[q * 32]);
          if (top && lane == row % 32) at[row / 32 * 32] -= t;
        } else if (k < j) {
          if (lane == 0) triangle[k * kWide + j] = along;  // v_k'v_j
        } else {
#pragma unroll
          for (int q = 0; q < kQ; ++q)
            if (q < used && (!top || q * 32 + lane > row)) at[q * 32] = r.gamma * x[q];
          if (top && lane == row % 32) at[row / 32 * 32] = r.beta * undo;
        }
      }
      __syncthreads();
    }
    triangle_from_products();
    cluster_sync();  // nobody sends here any more
  }

  // T from the products of its reflectors, which lie above the diagonal: T_ll = tau_l,
  // T_kl = -tau_l sum_s T_ks (v_s'v_l). A lane a row, 16 at a time; then the blocks above.
  __device__ __forceinline__ void triangle_from_products() {
    if (warp < 4 && lane < 16) {
      const int at = warp * 16;
      float* block = triangle + at * (kWide + 1);
      float t[16];
#pragma unroll
      for (int l = 0; l < 16; ++l) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < l; ++i) sum = fmaf(t[i], block[i * kWide + l], sum);
        const float tau = taus[at + l];
        t[l] = l < lane ? 0.0f : l == lane ? tau : -tau * sum;
      }
      __syncwarp(0xffff);
#pragma unroll
      for (int l = 0; l < 16; ++l) block[lane * kWide + l] = t[l];
    }
    __syncthreads();
    join_inverses<16>();
    join_inverses<32>();
  }
};

template <int kRows, int kHalves>
__global__ void __launch_bounds__(kPanelThreads, 1)
    factor_panel(const float* x, float* h, float* tau, std::uint16_t* v_high, std::uint16_t* v_low,
                 std::uint16_t* v_rows, float* triangles, float* crossed, float* tops,
                 const float* backs, Step s) {
  extern __shared__ float4 shared_memory[];
  constexpr int kC = kColumn<kRows>, kColumns = kHalves * kHalf;
  let_next_start();
  Panel<kRows, kHalves> panel;
  panel.p = reinterpret_cast<float*>(shared_memory);
  panel.work = reinterpret_cast<char*>(panel.p + kColumns * kC);
  panel.letters = reinterpret_cast<double*>(panel.work + kWorkBytes);
  panel.triangle = reinterpret_cast<float*>(panel.letters + kLetters);
  panel.taus = panel.triangle + kHalf * kWide;
  panel.thread = threadIdx.x;
  panel.warp = threadIdx.x / 32;
  panel.lane = threadIdx.x % 32;
  panel.rank = cluster_rank();
  panel.ranks = cluster_size();
  const int thread = panel.thread, rank = panel.rank;
  const std::int64_t matrix = blockIdx.x / panel.ranks;
  const int rows = s.m - s.first, begin = rank * kRows;  // rows of the panel, my first
  const std::int64_t corner =
      (matrix * s.columns_all + s.first) * s.stride + s.first;  // of the panel in X
  float* tau_to = tau + matrix * s.reflectors + s.first;
  float* h_to = h + (matrix * s.n + s.first) * s.m + s.first;
  const float* backs_of = backs + matrix * s.n + s.first;

  const int padded = s.stride - s.first;
#pragma unroll 8
  for (int e = thread; e < kColumns * (kRows / 4); e += kPanelThreads) {
    const int j = e / (kRows / 4), row = e % (kRows / 4) * 4;
    float* to = panel.column(j) + row;
    if (begin + row < padded)
      copy_16(to, x + corner + std::int64_t{j} * s.stride + begin + row);
    else
      *reinterpret_cast<float4*>(to) = make_float4(0, 0, 0, 0);
  }
  commit_copies();
  wait_copies<0>();
  __syncthreads();

#pragma unroll 1
  for (int half = 0; half < kHalves; ++half) {
    const int c0 = half * kHalf;
    const int count = max(0, min(kHalf, min(rows, s.n - s.first) - c0));
    const int from = rank == 0 ? c0 : 0;
    bool done = false;
    double* small = reinterpret_cast<double*>(panel.work);
    double* r = small + kHalf * kWide;
    if (kGram != 0 && count == kHalf && rows - c0 > kHalf) {
      const float* top = x + corner;
      std::int64_t top_stride = s.stride;
      if (half > 0) {
        float* to = tops + matrix * kHalf * kHalf;
        if (rank == 0)
          for (int e = thread; e < kHalf * kHalf; e += kPanelThreads)
            to[e] = panel.column(c0 + e / kHalf)[c0 + e % kHalf];
        top = to;
        top_stride = kHalf;
      }
      panel.gram(c0, from);
      const double* tiles = panel.template all_reduce<double, kGramSize, false>(nullptr);
      done = panel.chain(tiles, top, top_stride, small, r);
    }
    if (done) {
      panel.multiply_by_small(c0, rank == 0 ? c0 + kHalf : 0, small);
      // The top rows, as LAPACK has them.
      if (rank == 0)
        for (int e = thread; e < kHalf * kHalf; e += kPanelThreads) {
          const int j = e / kHalf, i = e % kHalf;
          panel.column(c0 + j)[c0 + i] =
              static_cast<float>(i <= j ? r[i * kWide + j] : small[i * kWide + j]);
        }
    } else {
      panel.householder(c0, count, min(kRows, rows - begin));
    }
    __syncthreads();

    // H and tau; then V with its ones and zeros.
    const int above = rank == 0 ? c0 + kHalf : 0;  // rows that may belong to R
    if (s.m % 4 == 0) {
      for (int e = thread; e < kHalf * (kRows / 4); e += kPanelThreads) {
        const int j = c0 + e / (kRows / 4), row = e % (kRows / 4) * 4;
        if (j < s.n - s.first && row >= above && begin + row < rows)
          *reinterpret_cast<float4*>(h_to + std::int64_t{j} * s.m + begin + row) =
              *reinterpret_cast<const float4*>(panel.column(j) + row);
      }
    } else {
      for (int j = c0 + panel.warp; j < min(c0 + kHalf, s.n - s.first); j += kPanelWarps)
        for (int row = above + panel.lane; row < min(kRows, rows - begin); row += 32)
          h_to[std::int64_t{j} * s.m + begin + row] = panel.column(j)[row];
    }
    for (int e = thread; e < kHalf * above; e += kPanelThreads) {
      const int j = c0 + e / above, row = e % above;
      if (j < s.n - s.first && row < rows)
        h_to[std::int64_t{j} * s.m + row] = panel.column(j)[row] * (row <= j ? backs_of[j] : 1.0f);
    }
    __syncthreads();
    if (rank == 0) {
      if (thread < count) tau_to[c0 + thread] = panel.taus[thread];
      __syncthreads();
      for (int e = thread; e < kHalf * kColumns; e += kPanelThreads) {
        const int j = e / kColumns, i = e % kColumns;
        if (i < c0 + j)
          panel.column(c0 + j)[i] = 0;
        else if (i == c0 + j)
          panel.column(c0 + j)[i] = j < count ? 1 : 0;
      }
    }
    if (done) panel.triangle_from_chain(small, r);
    if (rank == 0) {
      float* to = triangles + (matrix * kHalves + half) * kHalf * kHalf;
      for (int e = thread; e < kHalf * kHalf; e += kPanelThreads)
        to[e] = panel.triangle[e / kHalf * kWide + e % kHalf];
    }
    __syncthreads();
    if (kHalves == 2) {
      panel.cross(0, kHalf, 0);
      if (half == 0) {
        const float* w = panel.template all_reduce<float, kCrossSize, false>(nullptr);
        panel.update_second_half(w);
      } else {
        panel.template all_reduce<float, kCrossSize, true>(crossed + matrix * kHalf * kHalf);
      }
    }
  }

  for (int e = thread; e < kColumns * (kRows / 8); e += kPanelThreads) {
    const int j = e / (kRows / 8), row = e % (kRows / 8) * 8;
    if (begin + row >= padded) continue;
    const float4 a = *reinterpret_cast<const float4*>(panel.column(j) + row);
    const float4 b = *reinterpret_cast<const float4*>(panel.column(j) + row + 4);
    uint4 high, low;
    split(a.x * kRaise, a.y * kRaise, high.x, low.x);
    split(a.z * kRaise, a.w * kRaise, high.y, low.y);
    split(b.x * kRaise, b.y * kRaise, high.z, low.z);
    split(b.z * kRaise, b.w * kRaise, high.w, low.w);
    const std::int64_t to = (matrix * kColumns + j) * s.stride + begin + row;
    *reinterpret_cast<uint4*>(v_high + to) = high;
    *reinterpret_cast<uint4*>(v_low + to) = low;
  }
  // The same by rows, a row's high parts before its low parts.
  for (int e = thread; e < kRows * (kColumns / 8); e += kPanelThreads) {
    const int row = e % kRows, j = e / kRows * 8;
    if (begin + row >= padded) continue;
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = panel.column(j + i)[row] * kRaise;
    uint4 high, low;
    split(x[0], x[1], high.x, low.x);
    split(x[2], x[3], high.y, low.y);
    split(x[4], x[5], high.z, low.z);
    split(x[6], x[7], high.w, low.w);
    std::uint16_t* to = v_rows + (matrix * s.stride + begin + row) * 2 * kColumns + j;
    *reinterpret_cast<uint4*>(to) = high;
    *reinterpret_cast<uint4*>(to + kColumns) = low;
  }
  cluster_sync();  // the memory of a block stays while others may send to it
}

// --- scales ---

// X = A with every column's largest element brought to 8 .. 16, padded with zeros; a block a column
// from `first_column` on.
template <int kRows>
__global__ void __launch_bounds__(kThreads)
    copy_scaled(const float* a, float* x, float* backs, Step s, int first_column) {
  __shared__ float largest[kWarps];
  const std::int64_t matrix = blockIdx.y;
  const int j = first_column + blockIdx.x;
  float* to = x + (matrix * s.columns_all + j) * s.stride;
  const float* from = a + (matrix * s.n + j) * s.m;
  float column[kRows], most = 0;
#pragma unroll
  for (int q = 0; q < kRows; ++q) {
    const int row = q * kThreads + threadIdx.x;
    column[q] = j < s.n && row < s.m ? from[row] : 0.0f;
  }
#pragma unroll
  for (int q = 0; q < kRows; ++q) most = fmaxf(most, fabsf(column[q]));
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
  for (int q = 0; q < kRows; ++q) {
    const int row = q * kThreads + threadIdx.x;
    if (row < s.stride) to[row] = column[q] * scale.to;
  }
  if (threadIdx.x == 0 && j < s.n) backs[matrix * s.n + j] = scale.back;
}

// --- Y = T'W ---

template <int kHalves, int kColumns>
constexpr int kTurnBytes = ((kHalves == 2 ? 3 : 1) * kHalf * kHalf +
                            kColumns * (kHalves * kHalf + 4) * (kHalves == 2 ? 2 : 1)) *
                           4;

// Sums the slabs of W and applies T' of both halves: Y1 = T1'W1, Y2 = T2'(W2 - V2'V1 Y1).
template <int kHalves, int kColumns>
__global__ void __launch_bounds__(kThreads)
    turn_columns(const float* w, const float* triangles, const float* crossed,
                 std::uint16_t* y_high, std::uint16_t* y_low, int columns, int slabs) {
  extern __shared__ float4 shared_memory[];
  constexpr int kV = kHalves * kHalf, kStride = kV + 4, kSmall = kHalf * kHalf;
  constexpr int kOwn = kColumns * kHalf / kThreads;
  float* small = reinterpret_cast<float*>(shared_memory);  // T1, T2, V1'V2
  float* in = small + (kHalves == 2 ? 3 : 1) * kSmall;     // [column][reflector]
  float* out = kHalves == 2 ? in + kColumns * kStride : in;
  const int thread = threadIdx.x;
  const std::int64_t matrix = blockIdx.y;
  const int first = blockIdx.x * kColumns;
  for (int e = thread; e < kHalves * kSmall / 4; e += kThreads)
    copy_16(small + e * 4, triangles + matrix * kHalves * kSmall + e * 4);
  if constexpr (kHalves == 2)
    for (int e = thread; e < kSmall / 4; e += kThreads)
      copy_16(small + 2 * kSmall + e * 4, crossed + matrix * kSmall + e * 4);
  commit_copies();
  let_next_start();
  wait_for_previous();
#pragma unroll 1
  for (int e = thread; e < kColumns * kV / 4; e += kThreads) {
    const int j = e / (kV / 4), at = e % (kV / 4) * 4;
    const float* from = w + (matrix * slabs * columns + first + j) * kV + at;
    float4 sum = make_float4(0, 0, 0, 0);
    constexpr int kTogether = kColumns < 32 ? 16 : 4;
    for (int slab = 0; slab < slabs; slab += kTogether) {
      float4 part[kTogether];
#pragma unroll
      for (int i = 0; i < kTogether; ++i) {
        part[i] = make_float4(0, 0, 0, 0);
        if (slab + i < slabs)
          part[i] =
              __ldcg(reinterpret_cast<const float4*>(from + std::int64_t{slab + i} * columns * kV));
      }
#pragma unroll
      for (int i = 0; i < kTogether; ++i)
        sum.x += part[i].x, sum.y += part[i].y, sum.z += part[i].z, sum.w += part[i].w;
    }
    sum.x /= kRaise, sum.y /= kRaise, sum.z /= kRaise, sum.w /= kRaise;
    *reinterpret_cast<float4*>(in + j * kStride + at) = sum;
  }
  wait_copies<0>();
  __syncthreads();

  const int i = thread % kHalf, j0 = thread / kHalf * kOwn;
  // result[j] = sum_l matrix[l][i] source[j0 + j][l]
  const auto apply = [&](const float* matrix_rows, const float* source, float(&result)[kOwn]) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) result[j] = 0;
#pragma unroll 4
    for (int l = 0; l < kHalf; l += 4) {
      float factor[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) factor[e] = matrix_rows[(l + e) * kHalf + i];
#pragma unroll
      for (int j = 0; j < kOwn; ++j) {
        const float4 four = *reinterpret_cast<const float4*>(source + (j0 + j) * kStride + l);
        result[j] = fmaf(factor[0], four.x, result[j]);
        result[j] = fmaf(factor[1], four.y, result[j]);
        result[j] = fmaf(factor[2], four.z, result[j]);
        result[j] = fmaf(factor[3], four.w, result[j]);
      }
    }
  };
  const auto emit = [&](const float(&result)[kOwn], int half) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      std::uint32_t high, low;
      split(result[j], 0, high, low);
      const std::int64_t to = (matrix * columns + first + j0 + j) * kV + half * kHalf + i;
      y_high[to] = static_cast<std::uint16_t>(high);
      y_low[to] = static_cast<std::uint16_t>(low);
    }
  };
  float result[kOwn];
  apply(small, in, result);
  emit(result, 0);
  if constexpr (kHalves == 2) {
#pragma unroll
    for (int j = 0; j < kOwn; ++j) out[(j0 + j) * kStride + i] = result[j];
    __syncthreads();
    apply(small + 2 * kSmall, out, result);
#pragma unroll
    for (int j = 0; j < kOwn; ++j)
      out[(j0 + j) * kStride + kHalf + i] = in[(j0 + j) * kStride + kHalf + i] - result[j];
    __syncthreads();
    apply(small + kSmall, out + kHalf, result);
    emit(result, 1);
  }
}

// --- W' = X' V and X -= V Y ---

constexpr int kSwizzled = kTile * 128;  // bytes of 128 rows of 64 halves
constexpr int kLong = 64;               // rows that are on chip at a time
constexpr int kLongStride = 72;         // floats
constexpr int kProjectStage = 2 * kSwizzled + kTile * kLongStride * 4;
constexpr int kProjectStages = 3;

// Where 16-byte piece `piece` of row `row` lies.
__device__ __forceinline__ int swizzled(int row, int piece) {
  return row * 128 + (piece ^ row % 8) * 16;
}

// For 128 columns from `first_column` on and `slab` rows of them.
__global__ void __launch_bounds__(kThreads, 1)
    project_columns(const float* x, const std::uint16_t* v_high, const std::uint16_t* v_low,
                    float* w, Step s, int first_column, int columns, int slab) {
  extern __shared__ float4 shared_memory[];
  constexpr int kV = 2 * kHalf;
  let_next_start();
  char* memory = reinterpret_cast<char*>(shared_memory);
  memory += (1024 - shared_address(memory) % 1024) % 1024;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4,
            t = lane % 4;
  const std::int64_t matrix = blockIdx.z;
  const int padded = (s.m - s.first + kTile - 1) / kTile * kTile;
  const int begin = blockIdx.y * slab, end = min(padded, begin + slab);
  const float* x_from =
      x + (matrix * s.columns_all + first_column + blockIdx.x * kTile) * s.stride + s.first;
  const std::int64_t v_from = matrix * kV * s.stride;
  const int parts = (end - begin) / kLong;

  const auto fetch = [&](int part) {
    if (part < parts) {
      char* stage = memory + part % kProjectStages * kProjectStage;
      const int row = begin + part * kLong;
#pragma unroll
      for (int e = thread; e < 2 * kV * (kLong / 8); e += kThreads) {
        const int j = e / (kLong / 8), piece = e % (kLong / 8);
        const std::uint16_t* from = j < kV ? v_high : v_low;
        copy_16(stage + j / kV * kSwizzled + swizzled(j % kV, piece),
                from + v_from + std::int64_t{j % kV} * s.stride + row + piece * 8);
      }
      char* x_stage = stage + 2 * kSwizzled;
#pragma unroll
      for (int e = thread; e < kTile * (kLong / 4); e += kThreads) {
        const int j = e / (kLong / 4), at = e % (kLong / 4) * 4;
        copy_16(x_stage + (j * kLongStride + at) * 4,
                x_from + std::int64_t{j} * s.stride + row + at);
      }
    }
    commit_copies();
  };
#pragma unroll
  for (int part = 0; part < kProjectStages - 1; ++part) fetch(part);

  const int column = warp * 16 + g;
  float sums[16][4] = {}, part_sums[16][4];
#pragma unroll 1
  for (int part = 0; part < parts; ++part) {
    wait_copies<kProjectStages - 2>();
    show_to_tensor_cores();
    __syncthreads();
    fetch(part + kProjectStages - 1);
    const char* stage = memory + part % kProjectStages * kProjectStage;
    const float* x_tile =
        reinterpret_cast<const float*>(stage + 2 * kSwizzled) + column * kLongStride + 2 * t;
    const std::uint64_t v = operand(shared_address(stage));
    std::uint32_t high[kLong / 16][4], low[kLong / 16][4];
#pragma unroll
    for (int k = 0; k < kLong / 16; ++k)
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        const float2 two =
            *reinterpret_cast<const float2*>(x_tile + r % 2 * 8 * kLongStride + k * 16 + r / 2 * 8);
        split(two.x, two.y, high[k][r], low[k][r]);
      }
    begin_wide();
#pragma unroll
    for (int k = 0; k < kLong / 16; ++k) {
      multiply_wide(part_sums, low[k], v + k * 2, k > 0 || part % 2 > 0);
      multiply_wide(part_sums, high[k], v + kSwizzled / 16 + k * 2, 1);
      multiply_wide(part_sums, high[k], v + k * 2, 1);
    }
    end_wide();
    wait_wide<0>();
    // The accumulation cuts: not too many terms in one sum.
    if (part % 2 == 1 || part == parts - 1) {
#pragma unroll
      for (int j = 0; j < 16; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[j][e] += part_sums[j][e];
    }
  }
  wait_copies<0>();
  float* to = w + ((matrix * gridDim.y + blockIdx.y) * columns + blockIdx.x * kTile) * kV;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int j = 0; j < 16; ++j)
      *reinterpret_cast<float2*>(to + (column + half * 8) * kV + j * 8 + 2 * t) =
          make_float2(sums[j][2 * half], sums[j][2 * half + 1]);
}

constexpr int kUpdateBytes = 4 * kSwizzled + 2 * 4 * kSwizzled + 1024;

// 128 columns and `tiles` tiles of 128 rows, one after the other.
__global__ void __launch_bounds__(kThreads, 1)
    update_columns(float* x, float* h, const std::uint16_t* v_rows, const std::uint16_t* y_high,
                   const std::uint16_t* y_low, const float* backs, Step s, int first_column,
                   int columns, int tiles) {
  extern __shared__ float4 shared_memory[];
  constexpr int kV = 2 * kHalf;
  char* memory = reinterpret_cast<char*>(shared_memory);
  memory += (1024 - shared_address(memory) % 1024) % 1024;
  char* v_memory = memory + 4 * kSwizzled;
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4,
            t = lane % 4;
  const std::int64_t matrix = blockIdx.z;
  const int padded = (s.m - s.first + kTile - 1) / kTile, column0 = blockIdx.y * kTile;
  const int begin = blockIdx.x * tiles, end = min(padded, begin + tiles);

  // [high, low][half of the reflectors][row]
  const auto fetch = [&](int tile) {
    if (tile < end) {
      char* stage = v_memory + tile % 2 * 4 * kSwizzled;
      const std::uint16_t* from =
          v_rows + (matrix * s.stride + std::int64_t{tile} * kTile) * 2 * kV;
#pragma unroll 8
      for (int e = thread; e < kTile * (2 * kV / 8); e += kThreads) {
        const int row = e / (2 * kV / 8), piece = e % (2 * kV / 8);
        copy_16(stage + piece / 8 * kSwizzled + swizzled(row, piece % 8), from + e * 8);
      }
    }
    commit_copies();
  };
  // V and X are older than what the kernel before this one computes.
  fetch(begin);
  let_next_start();
  wait_for_previous();
  const std::int64_t y_from = (matrix * columns + column0) * kV;
#pragma unroll 8
  for (int e = thread; e < 2 * kTile * (kV / 8); e += kThreads) {
    const int j = e / (kV / 8), piece = e % (kV / 8);
    const std::uint16_t* from = j < kTile ? y_high : y_low;
    copy_16(memory + (j / kTile * 2 + piece / 8) * kSwizzled + swizzled(j % kTile, piece % 8),
            from + y_from + (j % kTile) * kV + piece * 8);
  }
  commit_copies();

  const int column = first_column + column0 + warp * 16 + g;
  float* x_at = x + (matrix * s.columns_all + column) * s.stride + s.first + 2 * t;
  const std::uint64_t y = operand(shared_address(memory) + warp / 4 * 64 * 128);
  constexpr int kPart = kSwizzled / 16;
#pragma unroll 1
  for (int tile = begin; tile < end; ++tile) {
    fetch(tile + 1);
    wait_copies<1>();
    show_to_tensor_cores();
    __syncthreads();
    const std::uint64_t v = operand(shared_address(v_memory + tile % 2 * 4 * kSwizzled));
    float sums[16][4];
    begin_wide();
#pragma unroll
    for (int k = 0; k < kV / 16; ++k) {
      const int at = k / 4 * kPart + k % 4 * 2;
      multiply_wide(sums, y + 2 * kPart + at, v + at, k > 0);
      multiply_wide(sums, y + at, v + 2 * kPart + at, 1);
      multiply_wide(sums, y + at, v + at, 1);
    }
    end_wide();
    float2 two[2][16];
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < 16; ++j)
        two[half][j] = *reinterpret_cast<const float2*>(x_at + std::int64_t{half} * 8 * s.stride +
                                                        tile * kTile + j * 8);
    wait_wide<0>();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* at = x_at + std::int64_t{half} * 8 * s.stride + tile * kTile;
      const int own = column + half * 8;
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        two[half][j].x = fmaf(sums[j][2 * half], -1 / kRaise, two[half][j].x);
        two[half][j].y = fmaf(sums[j][2 * half + 1], -1 / kRaise, two[half][j].y);
      }
      if (tile > 0) {
#pragma unroll
        for (int j = 0; j < 16; ++j) *reinterpret_cast<float2*>(at + j * 8) = two[half][j];
      } else if (own < s.n) {
        // The rows of the panel's own reflectors are rows of R now.
        const float back = backs[matrix * s.n + own];
        float* r = h + (matrix * s.n + own) * s.m + s.first + 2 * t;
#pragma unroll
        for (int j = 0; j < 16; ++j) {
          if (s.first + 2 * t + j * 8 < s.m) r[j * 8] = two[half][j].x * back;
          if (s.first + 2 * t + j * 8 + 1 < s.m) r[j * 8 + 1] = two[half][j].y * back;
        }
      }
    }
    __syncthreads();  // the place of this tile's V is free
  }
  wait_copies<0>();
}

// --- the plan ---

struct Work {
  kbeam::DevicePointer<std::uint16_t> v_high, v_low, v_rows;
  kbeam::DevicePointer<float> triangles, crossed;
};
struct Sums {
  kbeam::DevicePointer<float> w;
  kbeam::DevicePointer<std::uint16_t> y_high, y_low;
};
struct Job {
  kbeam::Plan& plan;
  kbeam::DeviceTensor<const float> a;
  kbeam::DeviceTensor<float> h, tau;
  int batch;
  Step shape;
  kbeam::DevicePointer<float> x, backs, tops;
};

int rounded_up(int value, int to) {
  return (value + to - 1) / to * to;
}

template <int kV>
Sums make_sums(Job& job, int columns, int slab) {
  const std::int64_t all = std::int64_t{job.batch} * columns * kV;
  const int slabs = (rounded_up(job.shape.m, kTile) + slab - 1) / slab;
  return {job.plan.scratch<float>(all * slabs), job.plan.scratch<std::uint16_t>(all),
          job.plan.scratch<std::uint16_t>(all)};
}

struct Columns {
  int first, count;
};

// Applies a panel to some columns.
template <bool kNear>
kbeam::Node plan_update(Job& job, const Work& work, const Sums& sums, const Step& s,
                        const Columns& columns, const kbeam::After& after, bool overlap) {
  constexpr int kSlab = kNear ? kNearSlab : kFarSlab, kTurned = kNear ? 8 : 32;
  constexpr int kTiles = kNear ? 1 : kFarTiles;
  const int rows = rounded_up(s.m - s.first, kTile), slabs = (rows + kSlab - 1) / kSlab;
  job.plan.launch(project_columns,
                  {.grid = {columns.count / kTile, slabs, job.batch},
                   .block = kThreads,
                   .shared_bytes = kProjectStages * kProjectStage + 1024,
                   .overlap_previous = overlap,
                   .after = after},
                  job.x, work.v_high, work.v_low, sums.w, s, columns.first, columns.count, kSlab);
  job.plan.launch(turn_columns<2, kTurned>,
                  {.grid = {columns.count / kTurned, job.batch},
                   .block = kThreads,
                   .shared_bytes = kTurnBytes<2, kTurned>,
                   .overlap_previous = true},
                  sums.w, work.triangles, work.crossed, sums.y_high, sums.y_low, columns.count,
                  slabs);
  return job.plan.launch(
      update_columns,
      {.grid = {(rows / kTile + kTiles - 1) / kTiles, columns.count / kTile, job.batch},
       .block = kThreads,
       .shared_bytes = kUpdateBytes,
       .overlap_previous = true},
      job.x, job.h, work.v_rows, sums.y_high, sums.y_low, job.backs, s, columns.first,
      columns.count, kTiles);
}

kbeam::Node plan_copy(Job& job, const Columns& columns, const kbeam::After& after, bool overlap) {
  auto* kernel = job.shape.stride <= 8 * kThreads ? copy_scaled<8> : copy_scaled<16>;
  if (job.shape.stride > 16 * kThreads) kernel = copy_scaled<33>;
  return job.plan.launch(kernel,
                         {.grid = {columns.count, job.batch},
                          .block = kThreads,
                          .overlap_previous = overlap,
                          .after = after},
                         job.a, job.x, job.backs, job.shape, columns.first);
}

template <int kRows, int kHalves>
void plan_panels(Job& job) {
  constexpr int kV = kHalves * kHalf;
  Step& shape = job.shape;
  // Tiles begin at multiples of the panel's width.
  shape.stride = rounded_up(shape.m, kTile) + kTile - kV;
  shape.columns_all = rounded_up(shape.n, kTile) + kTile - kV;
  const std::int64_t batch = job.batch;
  job.x = job.plan.scratch<float>(batch * shape.columns_all * shape.stride);
  job.backs = job.plan.scratch<float>(batch * shape.n);
  job.tops = job.plan.scratch<float>(batch * kHalf * kHalf);
  Work works[2];
  for (Work& work : works)
    work = {job.plan.scratch<std::uint16_t>(batch * kV * shape.stride),
            job.plan.scratch<std::uint16_t>(batch * kV * shape.stride),
            job.plan.scratch<std::uint16_t>(2 * batch * kV * shape.stride),
            job.plan.scratch<float>(batch * kV * kHalf),
            job.plan.scratch<float>(batch * kHalf * kHalf)};
  const Sums near = make_sums<kV>(job, kTile, kNearSlab);
  const Sums far = make_sums<kV>(job, shape.columns_all, kFarSlab);

  kbeam::Node last = plan_copy(job, {0, kV}, kbeam::at_start(), false);
  Step before = shape;
  Columns waiting{0, 0};  // for the panel before
  for (int first = 0, index = 0; first < shape.reflectors; first += kV, ++index) {
    Step s = shape;
    s.first = first;
    const Work& work = works[index % 2];
    const int ranks = (s.m - first + kRows - 1) / kRows;
    const kbeam::Node panel =
        job.plan.launch(factor_panel<kRows, kHalves>,
                        {.grid = job.batch * ranks,
                         .block = kPanelThreads,
                         .cluster = {ranks, 1},
                         .shared_bytes = kPanelBytes<kRows, kHalves>,
                         .after = {last}},
                        job.x, job.h, job.tau, work.v_high, work.v_low, work.v_rows, work.triangles,
                        work.crossed, job.tops, job.backs, s);
    last = panel;
    if (index == 0 && shape.columns_all > kV)
      last = plan_copy(job, {kV, shape.columns_all - kV}, {panel}, kOverlap != 0);
    if (waiting.count > 0)
      last = plan_update<false>(job, works[1 - index % 2], far, before, waiting, {panel},
                                kOverlap != 0);
    const int rest = rounded_up(std::max(0, shape.n - first - kV), kTile);
    waiting = {first + kV + kTile, rest - kTile};
    if (rest == 0) break;
    const kbeam::After both = last.id == panel.id ? kbeam::After{panel} : kbeam::After{panel, last};
    last = plan_update<true>(job, work, near, s, {first + kV, kTile}, both, false);
    before = s;
  }
  if (waiting.count > 0)
    plan_update<false>(job, works[before.first / kV % 2], far, before, waiting, {last}, false);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  Job job{plan,
          args.input<float>("A"),
          args.output<float>("H"),
          args.output<float>("tau"),
          0,
          {},
          {},
          {},
          {}};
  job.batch = static_cast<int>(job.a.dim(0));
  const int m = static_cast<int>(job.a.dim(1)), n = static_cast<int>(job.a.dim(2));
  job.shape = {m, n, std::min(m, n), 0, 0, 0};
  if (job.batch > 65535)
    plan.not_supported("this candidate is for few large matrices");
  else if (m > 16 * 256)
    plan.not_supported("more than 4096 rows");
  else
    plan_panels<256, 2>(job);
}
