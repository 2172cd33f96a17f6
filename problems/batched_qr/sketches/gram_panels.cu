// Blocked Householder QR for large matrices: a cluster holds a panel of 64 or 128 columns and gets
// its reflectors from the FP64 Gram matrix and the top rows, without a loop over long columns. A
// panel whose pivots are too small takes Householder steps instead. Updates are FP16 halves, three
// products each. Not tuned below 1000 rows.
#include <cuda_fp16.h>
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kGram, 1, 0, 1);              // 0: Householder steps in every panel
KBEAM_KNOB(int, kOverlap, 1, 0, 1);           // far updates run beside the next panel
KBEAM_KNOB(int, kFarSlab, 1024, 512, 1024);   // rows that one block projects, far from the panel
KBEAM_KNOB(int, kNearSlab, 256, 128, 256);    // the same for the columns of the next panel

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
__device__ __forceinline__ void load_matrices(std::uint32_t (&b)[4], const std::uint16_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(shared_address(row)));
}
__device__ __forceinline__ void load_transposed(std::uint32_t (&b)[4], const std::uint16_t* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(shared_address(row)));
}
// c += a b, 16 x 8 x 16.
__device__ __forceinline__ void multiply_add(float (&c)[4], const std::uint32_t (&a)[4],
                                             std::uint32_t b0, std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7},"
      " {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// c += a b, 8 x 8 x 4.
__device__ __forceinline__ void multiply_add(double (&c)[2], double a, double b) {
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c[0]), "+d"(c[1])
      : "d"(a), "d"(b));
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

constexpr int kPairs = 36;  // 8 x 8 tiles on and above the diagonal of 64 x 64
constexpr int kGramSize = kPairs * 64, kCrossSize = kHalf * kHalf;
constexpr int kWide = kHalf + 1;  // stride of small matrices
constexpr int kWorkBytes = (4 * kGramSize + 64) * 8;

template <int kRows>
constexpr int kColumn = kRows + 4;  // floats from one column of the panel to the next

template <int kRows, int kHalves>
constexpr int kPanelBytes = kHalves* kHalf* kColumn<kRows> * 4 + kWorkBytes + kHalf* kWide * 4 +
                            7 * kHalf * 8 + 2 * kHalf * 4 + 16;

template <int kRows, int kHalves>
struct Panel {
  float* p;        // [column][row]
  char* work;      // what a phase needs
  float* triangle;  // T of the half in hand, by rows, then padding
  double* letters;  // rows and columns that are published in the chain
  float* taus;
  int thread, warp, lane, rank, ranks;

  __device__ __forceinline__ float* column(int j) const {
    return p + j * kColumn<kRows>;
  }
  __device__ __forceinline__ double fragment(int j0, int row) const {
    return p[(j0 + lane / 4) * kColumn<kRows> + row + lane % 4];
  }

  // Sums `count` values over the two parts of every block of the cluster; everyone gets all of
  // them in `work` behind the parts and the letters, or, with kToOwner, block r writes its share to
  // `to`. The same bits everywhere.
  template <typename T, int kCount, bool kToOwner>
  __device__ T* all_reduce(T* to) {
    T* parts = reinterpret_cast<T*>(work);
    T* box = parts + 2 * kCount;
    T* all = box + kCount + 64 * (8 / sizeof(T)) / 2;
    constexpr int kVector = 16 / sizeof(T);
    const int share = (kCount / kVector + ranks - 1) / ranks;  // vectors
    cluster_sync();  // the parts are complete, and nobody uses the memory of the letters
    const std::uint32_t box_address = shared_address(box);
    for (int e = thread; e < kCount / kVector; e += kThreads) {
      const float4 a = reinterpret_cast<const float4*>(parts)[e];
      const float4 b = reinterpret_cast<const float4*>(parts + kCount)[e];
      const int owner = e / share;
      const float4 sum = add<T>(a, b);
      store_remote(address_in(box_address, owner) + (rank * share + e - owner * share) * 16, sum);
    }
    cluster_sync();
    const int mine = min(share, kCount / kVector - rank * share);
    const std::uint32_t all_address = shared_address(all);
    for (int e = thread; e < mine; e += kThreads) {
      float4 sum = reinterpret_cast<const float4*>(box)[e];
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
    return all;
  }
  template <typename T>
  static __device__ __forceinline__ float4 add(float4 a, float4 b) {
    if constexpr (sizeof(T) == 4) return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    const double2 x = *reinterpret_cast<const double2*>(&a);
    const double2 y = *reinterpret_cast<const double2*>(&b);
    const double2 sum = make_double2(x.x + y.x, x.y + y.y);
    return *reinterpret_cast<const float4*>(&sum);
  }

  // --- Gram matrix ---

  // Tiles (g, g ..) and (7 - g, 7 - g ..) over every other run of four rows.
  template <int kG>
  __device__ __forceinline__ void gram_tiles(int c0, int from, int part) {
    double sums[9][2] = {};
    for (int row = from + part * 4; row < kRows; row += 8) {
      double f[8];
#pragma unroll
      for (int i = kG; i < 8; ++i) f[i] = fragment(c0 + i * 8, row);
#pragma unroll
      for (int i = kG; i < 8; ++i) multiply_add(sums[i - kG], f[kG], f[i]);
#pragma unroll
      for (int i = 7 - kG; i < 8; ++i) multiply_add(sums[i - 7 + kG + 8 - kG], f[7 - kG], f[i]);
    }
    double* to = reinterpret_cast<double*>(work) + part * kGramSize;
    const auto keep = [&](int i, int j, const double(&sum)[2]) {
      const int tile = i * 8 - i * (i - 1) / 2 + j - i;
      *reinterpret_cast<double2*>(to + tile * 64 + lane * 2) = make_double2(sum[0], sum[1]);
    };
#pragma unroll
    for (int i = kG; i < 8; ++i) keep(kG, i, sums[i - kG]);
#pragma unroll
    for (int i = 7 - kG; i < 8; ++i) keep(7 - kG, i, sums[i - 7 + kG + 8 - kG]);
  }
  __device__ __forceinline__ void gram(int c0, int from) {
    const int part = warp / 4;
    switch (warp % 4) {
      case 0: gram_tiles<0>(c0, from, part); break;
      case 1: gram_tiles<1>(c0, from, part); break;
      case 2: gram_tiles<2>(c0, from, part); break;
      default: gram_tiles<3>(c0, from, part); break;
    }
  }
  // Element (i, j) of the Gram matrix among the tiles.
  static __device__ __forceinline__ double of_gram(const double* tiles, int i, int j) {
    const int a = min(i, j), b = max(i, j), row = a / 8, column = b / 8;
    const int tile = row * 8 - row * (row - 1) / 2 + column - row;
    return tiles[tile * 64 + a % 8 * 8 + b % 8];
  }

  // --- 64 steps on 64 x 64 ---

  // From the Gram matrix G and the top rows X of the panel: R with LAPACK's signs, L (the top of
  // V), and M, for which the rest of V is the rest of the panel times M. X - R = L U, U = M^-1.
  // A thread holds elements (y + 16 a, x + 16 b) of both matrices. G is one step ahead of X.
  // Afterwards `small` holds M on and above the diagonal and L below it, `r` holds R.
  __device__ bool chain(const double* tiles, const float* top, std::int64_t top_stride,
                        double* small, double* r) {
    const int y = thread / 16, x = thread % 16;
    double g[4][4], c[4][4];
#pragma unroll
    for (int a = 0; a < 4; ++a)
#pragma unroll
      for (int b = 0; b < 4; ++b) {
        g[a][b] = of_gram(tiles, y + 16 * a, x + 16 * b);
        c[a][b] = top[(x + 16 * b) * top_stride + y + 16 * a];
      }
    double* rows_g = letters;             // three rows of G
    double* rows_c = letters + 3 * kHalf;  // two rows of X
    double* columns_c = letters + 5 * kHalf;
    const double least = x == y ? kLeastPivot : 0;
    double first_squares[4];
#pragma unroll
    for (int a = 0; a < 4; ++a) first_squares[a] = least * g[a][a];
    __syncthreads();  // the Gram matrix has been read: its place is free
    if (y == 0) {
#pragma unroll
      for (int b = 0; b < 4; ++b) rows_g[x + 16 * b] = g[0][b];
    }
    bool good = true;
    double root = 0, root_before = 0;
    __syncthreads();
#pragma unroll
    for (int a0 = 0; a0 <= 4; ++a0) {
      for (int at = 0; at < 16; ++at) {
        const int j = a0 * 16 + at;
        if (j > kHalf) break;
        // Step j - 1 of X.
        root_before = root;
        double inverse = 0, sign = 0;
        const int l = j - 1;
        const double* row_g_l = rows_g + (l + 3) % 3 * kHalf;
        const double* row_c = rows_c + (l & 1) * kHalf;
        const double* column_c = columns_c + (l & 1) * kHalf;
        double diagonal = 1;
        if (a0 < 4) diagonal = rows_g[j % 3 * kHalf + j];
        if (j > 0) {
          const double alpha = row_c[l], square = row_g_l[l];
          sign = alpha < 0 ? root_before : -root_before;
          const double beta = sign * square;
          inverse = reciprocal(alpha - beta);
          good = good && square - alpha * alpha > kLeastTail * square;
          if (thread == 0) taus[l] = static_cast<float>((beta - alpha) * sign);
        }
        if (a0 < 4) root = reciprocal_root(diagonal);
        if (j > 0) {
          double u[4], f[4];
#pragma unroll
          for (int b = 0; b < 4; ++b) {
            const double entry = sign * row_g_l[x + 16 * b];
            u[b] = row_c[x + 16 * b] - entry;
            if (y == l % 16) r[l * kWide + x + 16 * b] = entry;
          }
#pragma unroll
          for (int a = 0; a < 4; ++a) {
            const int i = y + 16 * a;
            const bool pivot = i == l;
            f[a] = pivot ? inverse : column_c[i] * inverse;
            if (x == l % 16) small[i * kWide + l] = f[a];
#pragma unroll
            for (int b = 0; b < 4; ++b) c[a][b] = fma(-f[a], u[b], pivot ? 0.0 : c[a][b]);
          }
        }
        if (a0 < 4) {
          // Step j of G.
          const double* row_g = rows_g + j % 3 * kHalf;
          const double over = root * root;
          if (x == y && x == at) good = good && g[a0 < 4 ? a0 : 0][a0 < 4 ? a0 : 0] > first_squares[a0 < 4 ? a0 : 0];
          double across[4];
#pragma unroll
          for (int b = 0; b < 4; ++b) across[b] = row_g[x + 16 * b];
#pragma unroll
          for (int a = 0; a < 4; ++a) {
            const double down = row_g[y + 16 * a] * over;
#pragma unroll
            for (int b = 0; b < 4; ++b) g[a][b] = fma(-down, across[b], g[a][b]);
          }
          // What the next round reads.
          if (at < 15) {
            if (y == at + 1) {
#pragma unroll
              for (int b = 0; b < 4; ++b) rows_g[(j + 1) % 3 * kHalf + x + 16 * b] = g[a0 < 4 ? a0 : 0][b];
            }
          } else if (a0 < 3) {
            if (y == 0) {
#pragma unroll
              for (int b = 0; b < 4; ++b) rows_g[(j + 1) % 3 * kHalf + x + 16 * b] = g[a0 < 3 ? a0 + 1 : 0][b];
            }
          }
          if (y == at) {
#pragma unroll
            for (int b = 0; b < 4; ++b) rows_c[(j & 1) * kHalf + x + 16 * b] = c[a0 < 4 ? a0 : 0][b];
          }
          if (x == at) {
#pragma unroll
            for (int a = 0; a < 4; ++a) columns_c[(j & 1) * kHalf + y + 16 * a] = c[a][a0 < 4 ? a0 : 0];
          }
        }
        __syncthreads();
      }
    }
    return __syncthreads_and(good);
  }

  // The panel's rows below the top become V: P M. Rows from `from` on; a warp has its own rows.
  __device__ __forceinline__ void multiply_by_small(int c0, int from, const double* small) {
#pragma unroll 1
    for (int base = warp * 32; base < kRows; base += kWarps * 32) {
      if (base < from) continue;
      double sums[4][8][2] = {};
#pragma unroll
      for (int k = 0; k < kHalf; k += 4) {
        double a[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          a[i] = p[(c0 + k + lane % 4) * kColumn<kRows> + base + i * 8 + lane / 4];
#pragma unroll
        for (int j = k / 8; j < 8; ++j) {
          const int row = k + lane % 4, at = j * 8 + lane / 4;
          const double b = row <= at ? small[row * kWide + at] : 0.0;
#pragma unroll
          for (int i = 0; i < 4; ++i) multiply_add(sums[i][j], a[i], b);
        }
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            column(c0 + j * 8 + lane % 4 * 2 + e)[base + i * 8 + lane / 4] =
                static_cast<float>(sums[i][j][e]);
      __syncwarp();
    }
  }

  // T from T^-1 = -L'(R M), which is diag(1 / tau) and the products of reflectors above it.
  __device__ void triangle_from_chain(const double* small, double* r) {
    double sums[8][2] = {};
    const int row = warp * 8;
#pragma unroll 2
    for (int k = row; k < kHalf; k += 4) {
      const int i = row + lane / 4, l = k + lane % 4;
      const double a = i <= l ? r[i * kWide + l] : 0.0;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const int at = j * 8 + lane / 4;
        multiply_add(sums[j], a, l <= at ? small[l * kWide + at] : 0.0);
      }
    }
    __syncthreads();  // R has been read
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        r[(row + lane / 4) * kWide + j * 8 + lane % 4 * 2 + e] = sums[j][e];
    __syncthreads();
#pragma unroll
    for (int j = 0; j < 8; ++j) sums[j][0] = sums[j][1] = 0;
#pragma unroll 2
    for (int k = row; k < kHalf; k += 4) {
      const int i = row + lane / 4, l = k + lane % 4;
      const double a = i < l ? small[l * kWide + i] : i == l ? 1.0 : 0.0;
#pragma unroll
      for (int j = 0; j < 8; ++j) multiply_add(sums[j], a, r[l * kWide + j * 8 + lane / 4]);
    }
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int e = 0; e < 2; ++e)
        triangle[(row + lane / 4) * kWide + j * 8 + lane % 4 * 2 + e] =
            static_cast<float>(-sums[j][e]);
    __syncthreads();
    invert_triangle();
  }

  // triangle := its inverse, by blocks of 16, 32, 64.
  __device__ void invert_triangle() {
    float* t = triangle;
    float* spare = reinterpret_cast<float*>(work) + 2 * kHalf * kWide * 2;
    if (warp < 4 && lane < 16) {
      const int at = warp * 16;
      float x[16];
#pragma unroll
      for (int i = 15; i >= 0; --i) {
        float sum = i == lane ? 1.0f : 0.0f;
#pragma unroll
        for (int l = i + 1; l < 16; ++l) sum = fmaf(-t[(at + i) * kWide + at + l], x[l], sum);
        x[i] = i <= lane ? sum / t[(at + i) * kWide + at + i] : 0.0f;
      }
      __syncwarp(0xffff);
#pragma unroll
      for (int i = 0; i < 16; ++i) t[(at + i) * kWide + at + lane] = x[i];
    }
    __syncthreads();
    join_inverses<16>(t, spare);
    join_inverses<32>(t, spare);
    for (int e = thread; e < kHalf * kHalf; e += kThreads)
      if (e / kHalf > e % kHalf) t[e / kHalf * kWide + e % kHalf] = 0;
    __syncthreads();
  }
  template <int kSize>
  __device__ __forceinline__ void join_inverses(float* t, float* spare) {
    constexpr int kAll = kSize * kSize * (kHalf / (2 * kSize));
    for (int e = thread; e < kAll; e += kThreads) {
      const int pair = e / (kSize * kSize), i = e / kSize % kSize, j = e % kSize;
      const float* block = t + pair * 2 * kSize * (kWide + 1);
      float sum = 0;
#pragma unroll 8
      for (int l = 0; l < kSize; ++l)
        sum = fmaf(block[i * kWide + kSize + l],
                   l <= j ? block[(kSize + l) * kWide + kSize + j] : 0.0f, sum);
      spare[e] = sum;
    }
    __syncthreads();
    for (int e = thread; e < kAll; e += kThreads) {
      const int pair = e / (kSize * kSize), i = e / kSize % kSize, j = e % kSize;
      float* block = t + pair * 2 * kSize * (kWide + 1);
      float sum = 0;
#pragma unroll 8
      for (int l = 0; l < kSize; ++l)
        sum = fmaf(l >= i ? block[i * kWide + l] : 0.0f, spare[pair * kSize * kSize + l * kSize + j],
                   sum);
      block[i * kWide + kSize + j] = -sum;
    }
    __syncthreads();
  }

  // --- products of columns a .. a + 63 with columns b .. b + 63, into the parts ---

  __device__ __forceinline__ void cross(int a0, int b0, int from) {
    const int part = warp / 4, i0 = warp % 4 / 2 * 4, j0 = warp % 2 * 4;
    double sums[4][4][2] = {};
    for (int row = from + part * 4; row < kRows; row += 8) {
      double a[4], b[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        a[i] = fragment(a0 + (i0 + i) * 8, row);
        b[i] = fragment(b0 + (j0 + i) * 8, row);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) multiply_add(sums[i][j], a[i], b[j]);
    }
    float* to = reinterpret_cast<float*>(work) + part * kCrossSize;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        *reinterpret_cast<float2*>(to + ((i0 + i) * 8 + lane / 4) * kHalf + (j0 + j) * 8 +
                                   lane % 4 * 2) =
            make_float2(static_cast<float>(sums[i][j][0]), static_cast<float>(sums[i][j][1]));
  }

  // Columns 64 .. 127 -= V (T' W), W of 64 x 64 by rows.
  __device__ __forceinline__ void update_second_half(const float* w) {
    float* y = reinterpret_cast<float*>(work);  // the parts have been read
    {
      double sums[8][2] = {};
      const int row = warp * 8;
#pragma unroll 2
      for (int k = 0; k < row + 8; k += 4) {
        const double a = triangle[(k + lane % 4) * kWide + row + lane / 4];
#pragma unroll
        for (int j = 0; j < 8; ++j)
          multiply_add(sums[j], a, w[(k + lane % 4) * kHalf + j * 8 + lane / 4]);
      }
#pragma unroll
      for (int j = 0; j < 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          y[(row + lane / 4) * kWide + j * 8 + lane % 4 * 2 + e] = static_cast<float>(sums[j][e]);
    }
    __syncthreads();
#pragma unroll 1
    for (int base = warp * 32; base < kRows; base += kWarps * 32) {
      double sums[4][8][2] = {};
#pragma unroll 2
      for (int k = 0; k < kHalf; k += 4) {
        double a[4];
#pragma unroll
        for (int i = 0; i < 4; ++i)
          a[i] = p[(k + lane % 4) * kColumn<kRows> + base + i * 8 + lane / 4];
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const double b = y[(k + lane % 4) * kWide + j * 8 + lane / 4];
#pragma unroll
          for (int i = 0; i < 4; ++i) multiply_add(sums[i][j], a[i], b);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            float& at = column(kHalf + j * 8 + lane % 4 * 2 + e)[base + i * 8 + lane / 4];
            at = static_cast<float>(at - sums[i][j][e]);
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

  // Columns c0 .. c0 + 63, which begin at row c0 of the panel; `count` reflectors. Leaves R and V,
  // as LAPACK has them, in the panel, and T. The careful way, not the fast one.
  __device__ __noinline__ void householder(int c0, int count) {
    constexpr int kQ = kRows / 32;
    float* boxes = reinterpret_cast<float*>(work);  // [parity][rank][64]
    float* heads = boxes + 2 * 16 * kHalf;          // [parity][64]
    float* sums = heads + 2 * kHalf;
    float* row_values = sums + kHalf;
    float* totals = row_values + kHalf;
    float* products = totals + kHalf;  // v_i'v_j by rows
    const bool top = rank == 0;
    for (int e = thread; e < kHalf * kWide; e += kThreads) products[e] = triangle[e] = 0;
    if (thread < kHalf) taus[thread] = 0;
    cluster_sync();  // every block is ready to receive
    int letter = 0;
#pragma unroll 1
    for (int j = 0; j < count; ++j) {
      const int row = c0 + j;  // of the pivot, in the first block
      float x[kQ];             // the pivot column below it
#pragma unroll
      for (int q = 0; q < kQ; ++q)
        x[q] = top && q * 32 + lane <= row ? 0.0f : column(c0 + j)[q * 32 + lane];
      float undo = 1, scale = 1, square = 0;
      bool nonzero = true;
      const float* heads_now;
#pragma unroll 1
      for (int attempt = 0;; ++attempt) {
        const int parity = letter++ & 1;
        heads_now = heads + parity * kHalf;
#pragma unroll 1
        for (int k = warp; k < kHalf; k += kWarps) {
          float dot = 0;
#pragma unroll
          for (int q = 0; q < kQ; ++q)
            dot = fmaf(x[q], k == j ? x[q] : column(c0 + k)[q * 32 + lane], dot);
#pragma unroll
          for (int level = 16; level > 0; level >>= 1)
            dot += __shfl_xor_sync(~0u, dot, level);
          if (lane == 0) {
            sums[k] = dot;
            if (top) row_values[k] = column(c0 + k)[row];
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
#pragma unroll 1
      for (int k = warp; k < kHalf; k += kWarps) {
        float* at = column(c0 + k) + lane;
        const float along = fmaf(r.gamma, totals[k], heads_now[k]);
        if (k > j) {
          const float t = r.tau * along, u = -t * r.gamma;
#pragma unroll
          for (int q = 0; q < kQ; ++q) at[q * 32] = fmaf(u, x[q], at[q * 32]);
          if (top && lane == row % 32) at[row / 32 * 32] -= t;
        } else if (k < j) {
          if (lane == 0) products[k * kWide + j] = along;
        } else {
#pragma unroll
          for (int q = 0; q < kQ; ++q)
            if (!top || q * 32 + lane > row) at[q * 32] = r.gamma * x[q];
          if (top && lane == row % 32) at[row / 32 * 32] = r.beta * undo;
        }
      }
      __syncthreads();
    }
    // T by columns, a thread a row.
#pragma unroll 1
    for (int j = 0; j < count; ++j) {
      if (thread <= j) {
        float sum = 0;
        for (int l = thread; l < j; ++l)
          sum = fmaf(triangle[thread * kWide + l], products[l * kWide + j], sum);
        triangle[thread * kWide + j] = thread == j ? taus[j] : -taus[j] * sum;
      }
      __syncthreads();
    }
    cluster_sync();  // nobody sends here any more
  }
};

template <int kRows, int kHalves>
__global__ void __launch_bounds__(kThreads, 1)
    factor_panel(const float* x, float* h, float* tau, std::uint16_t* v_high, std::uint16_t* v_low,
                 float* triangles, float* crossed, float* tops, const float* backs, Step s) {
  extern __shared__ float4 shared_memory[];
  constexpr int kC = kColumn<kRows>, kColumns = kHalves * kHalf;
  let_next_start();
  Panel<kRows, kHalves> panel;
  panel.p = reinterpret_cast<float*>(shared_memory);
  panel.work = reinterpret_cast<char*>(panel.p + kColumns * kC);
  panel.letters = reinterpret_cast<double*>(panel.work + kWorkBytes);
  panel.triangle = reinterpret_cast<float*>(panel.letters + 7 * kHalf);
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
  for (int e = thread; e < kColumns * (kRows / 4); e += kThreads) {
    const int j = e / (kRows / 4), row = e % (kRows / 4) * 4;
    float* to = panel.column(j) + row;
    if (begin + row < padded)
      copy_16(to, x + corner + std::int64_t{j} * s.stride + begin + row);
    else
      *reinterpret_cast<float4*>(to) = make_float4(0, 0, 0, 0);
  }
  commit_copies();
  wait_copies<0>();
  cluster_sync();

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
          for (int e = thread; e < kHalf * kHalf; e += kThreads)
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
      if (rank == 0) {
        __syncthreads();
        // The top rows, as LAPACK has them.
        for (int e = thread; e < kHalf * kHalf; e += kThreads) {
          const int j = e / kHalf, i = e % kHalf;
          panel.column(c0 + j)[c0 + i] =
              static_cast<float>(i <= j ? r[i * kWide + j] : small[i * kWide + j]);
        }
        __syncthreads();
      }
    } else {
      __syncthreads();
      panel.householder(c0, count);
    }
    __syncthreads();

    // H and tau; then V with its ones and zeros.
    for (int j = panel.warp; j < min(kHalf, s.n - s.first - c0); j += kWarps) {
      const float* from_column = panel.column(c0 + j);
      float* to = h_to + std::int64_t{c0 + j} * s.m + begin;
      const float back = rank == 0 ? backs_of[c0 + j] : 1.0f;
      for (int row = panel.lane; row < min(kRows, rows - begin); row += 32)
        to[row] = from_column[row] * (begin + row <= c0 + j ? back : 1.0f);
    }
    if (rank == 0) {
      if (thread < count) tau_to[c0 + thread] = panel.taus[thread];
      __syncthreads();
      for (int e = thread; e < kHalf * (c0 + kHalf); e += kThreads) {
        const int j = e / (c0 + kHalf), i = e % (c0 + kHalf);
        if (i < c0 + j)
          panel.column(c0 + j)[i] = 0;
        else if (i == c0 + j)
          panel.column(c0 + j)[i] = j < count ? 1 : 0;
      }
    }
    if (done) panel.triangle_from_chain(small, r);
    if (rank == 0) {
      float* to = triangles + (matrix * kHalves + half) * kHalf * kHalf;
      for (int e = thread; e < kHalf * kHalf; e += kThreads)
        to[e] = panel.triangle[e / kHalf * kWide + e % kHalf];
    }
    __syncthreads();
    if (kHalves == 2 && half == 0) {
      panel.cross(0, kHalf, 0);
      const float* w = panel.template all_reduce<float, kCrossSize, false>(nullptr);
      panel.update_second_half(w);
    }
    if (kHalves == 2 && half == 1) {
      panel.cross(0, kHalf, 0);
      panel.template all_reduce<float, kCrossSize, true>(crossed + matrix * kHalf * kHalf);
    }
  }

  for (int e = thread; e < kColumns * (kRows / 8); e += kThreads) {
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
  cluster_sync();  // the memory of a block stays while others may send to it
}

// --- scales ---

// X = A with every column's largest element brought to 8 .. 16, padded with zeros; a warp a column.
__global__ void __launch_bounds__(kThreads)
    copy_scaled(const float* a, float* x, float* backs, Step s, std::int64_t count) {
  const int lane = threadIdx.x % 32;
  const std::int64_t column = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (column >= count) return;
  const std::int64_t matrix = column / s.columns_all;
  const int j = static_cast<int>(column % s.columns_all);
  float* to = x + column * s.stride;
  if (j >= s.n) {
    for (int row = lane; row < s.stride; row += 32) to[row] = 0;
    return;
  }
  const float* from = a + (matrix * s.n + j) * s.m;
  float most = 0;
#pragma unroll 16
  for (int row = lane; row < s.m; row += 32) most = fmaxf(most, fabsf(from[row]));
  most = warp_max(most);
  Scale scale{1, 1};
  if (most > 0 && most <= 0x1.fffffep127f) {
    scale = scale_for(most);
    if (scale.to <= 0x1p123f && scale.back <= 0x1p126f) scale = {scale.to * 8, scale.back / 8};
  }
#pragma unroll 16
  for (int row = lane; row < s.stride; row += 32) to[row] = row < s.m ? from[row] * scale.to : 0;
  if (lane == 0) backs[matrix * s.n + j] = scale.back;
}

// --- W' = X' V ---

constexpr int kDeep = 32;                 // rows that are on chip at a time
constexpr int kXStride = 40;              // floats
constexpr int kHalfStride = 40;           // halves
constexpr int kMostSum = 128;             // rows that one accumulator sums
constexpr int kProjectStages = 4;

template <int kHalves>
constexpr int kProjectStage = kTile* kXStride * 4 + 2 * kHalves * kHalf * kHalfStride * 2;

// Columns from `first_column` on, 128 a block, and `slab` rows of them.
template <int kHalves>
__global__ void __launch_bounds__(kThreads, 1)
    project_columns(const float* x, const std::uint16_t* v_high, const std::uint16_t* v_low,
                    float* w, Step s, int first_column, int columns, int slab) {
  extern __shared__ float4 shared_memory[];
  constexpr int kV = kHalves * kHalf, kTiles = kV / 16;
  char* memory = reinterpret_cast<char*>(shared_memory);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4,
            t = lane % 4;
  const std::int64_t matrix = blockIdx.z;
  const int padded = (s.m - s.first + kTile - 1) / kTile * kTile;
  const int begin = blockIdx.y * slab, end = min(padded, begin + slab);
  const float* x_from =
      x + (matrix * s.columns_all + first_column + blockIdx.x * kTile) * s.stride + s.first;
  const std::int64_t v_from = matrix * kV * s.stride;
  const int parts = (end - begin) / kDeep;

  const auto fetch = [&](int part) {
    if (part < parts) {
      char* stage = memory + part % kProjectStages * kProjectStage<kHalves>;
      const int row = begin + part * kDeep;
#pragma unroll
      for (int e = thread; e < kTile * (kDeep / 4); e += kThreads) {
        const int j = e / (kDeep / 4), at = e % (kDeep / 4) * 4;
        copy_16(stage + (j * kXStride + at) * 4, x_from + std::int64_t{j} * s.stride + row + at);
      }
      char* v_stage = stage + kTile * kXStride * 4;
#pragma unroll
      for (int e = thread; e < 2 * kV * (kDeep / 8); e += kThreads) {
        const int j = e / (kDeep / 8), at = e % (kDeep / 8) * 8;
        const std::uint16_t* from = j < kV ? v_high : v_low;
        copy_16(v_stage + (j * kHalfStride + at) * 2,
                from + v_from + std::int64_t{j % kV} * s.stride + row + at);
      }
    }
    commit_copies();
  };
#pragma unroll
  for (int part = 0; part < kProjectStages - 1; ++part) fetch(part);

  const int column = warp % 4 * 32, v0 = warp / 4 * (kV / 2);
  float sums[2][kTiles][4] = {}, part_sums[2][kTiles][4] = {};
  for (int part = 0; part < parts; ++part) {
    wait_copies<kProjectStages - 2>();
    __syncthreads();
    fetch(part + kProjectStages - 1);
    const char* stage = memory + part % kProjectStages * kProjectStage<kHalves>;
    const float* x_tile = reinterpret_cast<const float*>(stage);
    const std::uint16_t* v_tile =
        reinterpret_cast<const std::uint16_t*>(stage + kTile * kXStride * 4) +
        (v0 + lane / 16 * 8 + lane % 8) * kHalfStride + lane / 8 % 2 * 8;
#pragma unroll
    for (int k = 0; k < kDeep; k += 16) {
      std::uint32_t high[2][4], low[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          const float2 two = *reinterpret_cast<const float2*>(
              x_tile + (column + i * 16 + r % 2 * 8 + g) * kXStride + k + r / 2 * 8 + 2 * t);
          split(two.x, two.y, high[i][r], low[i][r]);
        }
#pragma unroll
      for (int j = 0; j < kTiles; j += 2) {
        std::uint32_t b_high[4], b_low[4];
        load_matrices(b_high, v_tile + j * 8 * kHalfStride + k);
        load_matrices(b_low, v_tile + (kV + j * 8) * kHalfStride + k);
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            multiply_add(part_sums[i][j + e], low[i], b_high[2 * e], b_high[2 * e + 1]);
            multiply_add(part_sums[i][j + e], high[i], b_low[2 * e], b_low[2 * e + 1]);
            multiply_add(part_sums[i][j + e], high[i], b_high[2 * e], b_high[2 * e + 1]);
          }
      }
    }
    // The accumulation cuts: not too many terms in one sum.
    if (part % (kMostSum / kDeep) == kMostSum / kDeep - 1 || part == parts - 1) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < kTiles; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            sums[i][j][e] += part_sums[i][j][e];
            part_sums[i][j][e] = 0;
          }
    }
  }
  wait_copies<0>();
  float* to = w + ((matrix * gridDim.y + blockIdx.y) * columns + blockIdx.x * kTile) * kV;
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int j = 0; j < kTiles; ++j)
        *reinterpret_cast<float2*>(to + (column + i * 16 + half * 8 + g) * kV + v0 + j * 8 +
                                   2 * t) =
            make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
}

// --- Y = T'W ---

constexpr int kTurnColumns = 32;
template <int kHalves>
constexpr int kTurnBytes = ((kHalves == 2 ? 3 : 1) * kHalf * kHalf +
                            kTurnColumns * (kHalves * kHalf + 4) * (kHalves == 2 ? 2 : 1)) * 4;

// Sums the slabs of W and applies T' of both halves: Y1 = T1'W1, Y2 = T2'(W2 - V2'V1 Y1).
template <int kHalves>
__global__ void __launch_bounds__(kThreads)
    turn_columns(const float* w, const float* triangles, const float* crossed,
                 std::uint16_t* y_high, std::uint16_t* y_low, int columns, int slabs) {
  extern __shared__ float4 shared_memory[];
  constexpr int kV = kHalves * kHalf, kStride = kV + 4, kSmall = kHalf * kHalf;
  float* small = reinterpret_cast<float*>(shared_memory);  // T1, T2, V1'V2
  float* in = small + (kHalves == 2 ? 3 : 1) * kSmall;     // [column][reflector]
  float* out = kHalves == 2 ? in + kTurnColumns * kStride : in;
  const int thread = threadIdx.x;
  const std::int64_t matrix = blockIdx.y;
  const int first = blockIdx.x * kTurnColumns;
  for (int e = thread; e < kHalves * kSmall; e += kThreads)
    small[e] = triangles[matrix * kHalves * kSmall + e];
  if constexpr (kHalves == 2)
    for (int e = thread; e < kSmall; e += kThreads)
      small[2 * kSmall + e] = crossed[matrix * kSmall + e];
  for (int e = thread; e < kTurnColumns * kV / 4; e += kThreads) {
    const int j = e / (kV / 4), at = e % (kV / 4) * 4;
    const float* from = w + (matrix * slabs * columns + first + j) * kV + at;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (int slab = 0; slab < slabs; ++slab) {
      const float4 part =
          *reinterpret_cast<const float4*>(from + std::int64_t{slab} * columns * kV);
      sum.x += part.x, sum.y += part.y, sum.z += part.z, sum.w += part.w;
    }
    sum.x /= kRaise, sum.y /= kRaise, sum.z /= kRaise, sum.w /= kRaise;
    *reinterpret_cast<float4*>(in + j * kStride + at) = sum;
  }
  __syncthreads();

  const int i = thread % kHalf, j0 = thread / kHalf * 8;
  // result[j] = sum_l matrix[l][i] source[j0 + j][l]
  const auto apply = [&](const float* matrix_rows, const float* source, float(&result)[8]) {
#pragma unroll
    for (int j = 0; j < 8; ++j) result[j] = 0;
#pragma unroll 4
    for (int l = 0; l < kHalf; l += 4) {
      float factor[4];
#pragma unroll
      for (int e = 0; e < 4; ++e) factor[e] = matrix_rows[(l + e) * kHalf + i];
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float4 four = *reinterpret_cast<const float4*>(source + (j0 + j) * kStride + l);
        result[j] = fmaf(factor[0], four.x, result[j]);
        result[j] = fmaf(factor[1], four.y, result[j]);
        result[j] = fmaf(factor[2], four.z, result[j]);
        result[j] = fmaf(factor[3], four.w, result[j]);
      }
    }
  };
  const auto emit = [&](const float(&result)[8], int half) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      std::uint32_t high, low;
      split(result[j], 0, high, low);
      const std::int64_t to = (matrix * columns + first + j0 + j) * kV + half * kHalf + i;
      y_high[to] = static_cast<std::uint16_t>(high);
      y_low[to] = static_cast<std::uint16_t>(low);
    }
  };
  float result[8];
  apply(small, in, result);
  emit(result, 0);
  if constexpr (kHalves == 2) {
#pragma unroll
    for (int j = 0; j < 8; ++j) out[(j0 + j) * kStride + i] = result[j];
    __syncthreads();
    apply(small + 2 * kSmall, out, result);
#pragma unroll
    for (int j = 0; j < 8; ++j)
      out[(j0 + j) * kStride + kHalf + i] = in[(j0 + j) * kStride + kHalf + i] - result[j];
    __syncthreads();
    apply(small + kSmall, out + kHalf, result);
    emit(result, 1);
  }
}

// --- X -= V Y ---

template <int kHalves>
constexpr int kUpdateStage = 2 * kTile* kHalfStride * 2 + 2 * kDeep*(kTile + 8) * 2;

// A tile of 128 rows and columns. The rows of the panel's own reflectors are rows of R now.
template <int kHalves>
__global__ void __launch_bounds__(kThreads, 2)
    update_tiles(float* x, float* h, const std::uint16_t* v_high, const std::uint16_t* v_low,
                 const std::uint16_t* y_high, const std::uint16_t* y_low, const float* backs,
                 Step s, int first_column, int columns) {
  extern __shared__ float4 shared_memory[];
  constexpr int kV = kHalves * kHalf, kVStride = kTile + 8, kParts = kV / kDeep;
  char* memory = reinterpret_cast<char*>(shared_memory);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32, g = lane / 4,
            t = lane % 4;
  const std::int64_t matrix = blockIdx.z;
  const int row0 = blockIdx.x * kTile, column0 = blockIdx.y * kTile;
  const std::int64_t v_from = matrix * kV * s.stride + row0;
  const std::int64_t y_from = (matrix * columns + column0) * kV;

  const auto fetch = [&](int part) {
    if (part < kParts) {
      char* stage = memory + part % 2 * kUpdateStage<kHalves>;
#pragma unroll
      for (int e = thread; e < 2 * kTile * (kDeep / 8); e += kThreads) {
        const int j = e / (kDeep / 8), at = e % (kDeep / 8) * 8;
        const std::uint16_t* from = j < kTile ? y_high : y_low;
        copy_16(stage + (j * kHalfStride + at) * 2,
                from + y_from + (j % kTile) * kV + part * kDeep + at);
      }
      char* v_stage = stage + 2 * kTile * kHalfStride * 2;
#pragma unroll
      for (int e = thread; e < 2 * kDeep * (kTile / 8); e += kThreads) {
        const int l = e / (kTile / 8), at = e % (kTile / 8) * 8;
        const std::uint16_t* from = l < kDeep ? v_high : v_low;
        copy_16(v_stage + (l * kVStride + at) * 2,
                from + v_from + std::int64_t{part * kDeep + l % kDeep} * s.stride + at);
      }
    }
    commit_copies();
  };
  fetch(0);

  const int column = warp % 4 * 32, row = warp / 4 * 64;
  float sums[2][8][4] = {};
#pragma unroll 1
  for (int part = 0; part < kParts; ++part) {
    fetch(part + 1);
    wait_copies<1>();
    __syncthreads();
    const char* stage = memory + part % 2 * kUpdateStage<kHalves>;
    const std::uint16_t* y_tile = reinterpret_cast<const std::uint16_t*>(stage) +
                                  (column + lane % 16) * kHalfStride + lane / 16 * 8;
    const std::uint16_t* v_tile =
        reinterpret_cast<const std::uint16_t*>(stage + 2 * kTile * kHalfStride * 2) +
        (lane / 8 % 2 * 8 + lane % 8) * kVStride + row + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < kDeep; k += 16) {
      std::uint32_t high[2][4], low[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        load_matrices(high[i], y_tile + i * 16 * kHalfStride + k);
        load_matrices(low[i], y_tile + (kTile + i * 16) * kHalfStride + k);
      }
#pragma unroll
      for (int j = 0; j < 8; j += 2) {
        std::uint32_t b_high[4], b_low[4];
        load_transposed(b_high, v_tile + k * kVStride + j * 8);
        load_transposed(b_low, v_tile + (kDeep + k) * kVStride + j * 8);
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            multiply_add(sums[i][j + e], low[i], b_high[2 * e], b_high[2 * e + 1]);
            multiply_add(sums[i][j + e], high[i], b_low[2 * e], b_low[2 * e + 1]);
            multiply_add(sums[i][j + e], high[i], b_high[2 * e], b_high[2 * e + 1]);
          }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int j = first_column + column0 + column + i * 16 + half * 8 + g;
      float* at = x + (matrix * s.columns_all + j) * s.stride + s.first;
      const float back = blockIdx.x == 0 && j < s.n ? backs[matrix * s.n + j] : 1.0f;
#pragma unroll
      for (int tile = 0; tile < 8; ++tile) {
        const int to = row0 + row + tile * 8 + 2 * t;
        float2 two = *reinterpret_cast<const float2*>(at + to);
        two.x = fmaf(sums[i][tile][2 * half], -1 / kRaise, two.x);
        two.y = fmaf(sums[i][tile][2 * half + 1], -1 / kRaise, two.y);
        if (to >= kV) {
          *reinterpret_cast<float2*>(at + to) = two;
        } else if (j < s.n) {
          float* r = h + (matrix * s.n + j) * s.m + s.first + to;
          if (s.first + to < s.m) r[0] = two.x * back;
          if (s.first + to + 1 < s.m) r[1] = two.y * back;
        }
      }
    }
}

// --- the plan ---

struct Work {
  kbeam::DevicePointer<std::uint16_t> v_high, v_low;
  kbeam::DevicePointer<float> triangles, crossed;
};
struct Sums {
  kbeam::DevicePointer<float> w;
  kbeam::DevicePointer<std::uint16_t> y_high, y_low;
  int slab;
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

template <int kHalves>
Sums make_sums(Job& job, int columns, int slab) {
  constexpr int kV = kHalves * kHalf;
  const std::int64_t all = std::int64_t{job.batch} * columns * kV;
  const int slabs = (rounded_up(job.shape.m, kTile) + slab - 1) / slab;
  return {job.plan.scratch<float>(all * slabs), job.plan.scratch<std::uint16_t>(all),
          job.plan.scratch<std::uint16_t>(all), slab};
}

// Applies a panel to `columns` columns from `first_column` on.
template <int kHalves>
kbeam::Node plan_update(Job& job, const Work& work, const Sums& sums, const Step& s,
                        int first_column, int columns, const kbeam::After& after, bool overlap) {
  const int rows = rounded_up(s.m - s.first, kTile), slabs = (rows + sums.slab - 1) / sums.slab;
  job.plan.launch(project_columns<kHalves>,
                  {.grid = {columns / kTile, slabs, job.batch},
                   .block = kThreads,
                   .shared_bytes = kProjectStages * kProjectStage<kHalves>,
                   .overlap_previous = overlap,
                   .after = after},
                  job.x, work.v_high, work.v_low, sums.w, s, first_column, columns, sums.slab);
  job.plan.launch(turn_columns<kHalves>,
                  {.grid = {columns / kTurnColumns, job.batch},
                   .block = kThreads,
                   .shared_bytes = kTurnBytes<kHalves>},
                  sums.w, work.triangles, work.crossed, sums.y_high, sums.y_low, columns, slabs);
  return job.plan.launch(update_tiles<kHalves>,
                         {.grid = {rows / kTile, columns / kTile, job.batch},
                          .block = kThreads,
                          .shared_bytes = 2 * kUpdateStage<kHalves>},
                         job.x, job.h, work.v_high, work.v_low, sums.y_high, sums.y_low, job.backs,
                         s, first_column, columns);
}

template <int kRows, int kHalves>
void plan_panels(Job& job) {
  constexpr int kV = kHalves * kHalf;
  Step& shape = job.shape;
  // Tiles begin at multiples of the panel's width.
  shape.stride = rounded_up(shape.m, kTile) + kTile - kV;
  shape.columns_all = rounded_up(shape.n, kTile) + kTile - kV;
  const std::int64_t batch = job.batch, columns = batch * shape.columns_all;
  job.x = job.plan.scratch<float>(columns * shape.stride);
  job.backs = job.plan.scratch<float>(batch * shape.n);
  job.tops = job.plan.scratch<float>(batch * kHalf * kHalf);
  Work works[2];
  for (Work& work : works)
    work = {job.plan.scratch<std::uint16_t>(batch * kV * shape.stride),
            job.plan.scratch<std::uint16_t>(batch * kV * shape.stride),
            job.plan.scratch<float>(batch * kV * kHalf),
            job.plan.scratch<float>(batch * kHalf * kHalf)};
  const Sums near = make_sums<kHalves>(job, kTile, kNearSlab);
  const Sums far = make_sums<kHalves>(job, shape.columns_all, kFarSlab);

  kbeam::Node last = job.plan.launch(
      copy_scaled, {.grid = (columns + kWarps - 1) / kWarps, .block = kThreads}, job.a, job.x,
      job.backs, shape, columns);
  Step before = shape;
  int far_columns = 0;  // of the panel before, still to be updated
  for (int first = 0, index = 0; first < shape.reflectors; first += kV, ++index) {
    Step s = shape;
    s.first = first;
    const Work& work = works[index % 2];
    const int ranks = (s.m - first + kRows - 1) / kRows;
    const kbeam::Node panel = job.plan.launch(factor_panel<kRows, kHalves>,
                                              {.grid = job.batch * ranks,
                                               .block = kThreads,
                                               .cluster = {ranks, 1},
                                               .shared_bytes = kPanelBytes<kRows, kHalves>,
                                               .after = {last}},
                                              job.x, job.h, job.tau, work.v_high, work.v_low,
                                              work.triangles, work.crossed, job.tops, job.backs, s);
    last = panel;
    if (far_columns > 0) {
      const int at = before.first + kV + kTile;
      last = plan_update<kHalves>(job, works[1 - index % 2], far, before, at, far_columns, {panel},
                                  kOverlap != 0);
      far_columns = 0;
    }
    const int rest = rounded_up(std::max(0, shape.n - first - kV), kTile);
    if (rest == 0) break;
    far_columns = kOverlap != 0 ? rest - kTile : 0;
    const kbeam::After both = last.id == panel.id ? kbeam::After{panel} : kbeam::After{panel, last};
    last = plan_update<kHalves>(job, work, kOverlap != 0 ? near : far, s, first + kV,
                                kOverlap != 0 ? kTile : rest, both, false);
    before = s;
  }
  if (far_columns > 0)
    plan_update<kHalves>(job, works[before.first / kV % 2], far, before,
                         before.first + kV + kTile, far_columns, {last}, false);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  Job job{plan, args.input<float>("A"), args.output<float>("H"), args.output<float>("tau"), 0, {},
          {},   {},                     {}};
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
