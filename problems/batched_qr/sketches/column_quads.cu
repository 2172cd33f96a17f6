// Householder QR of matrices that stay in the registers of a cluster: a warp owns sixteen columns,
// four lanes each, and applies the pivots of the warps before it one by one as they are published
// in shared memory, then makes its own. A dot product is finished by two exchanges.
#include <cuda_fp16.h>
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kStep, 4, 1, 2, 3, 4);    // chunks of rows that are left out together
KBEAM_KNOB(int, kMostRanks, 2, 1, 2, 3);  // blocks a matrix, if there are few
KBEAM_KNOB(int, kRankWarps, 4, 4, 6, 7);  // warps of each, if there are several
KBEAM_KNOB(int, kCut, 6, 4, 6, 11);       // the same as kStep, while blocks of pivots are applied

namespace {

// Columns whose largest element lies outside are multiplied by a power of two, which is exact for
// the reflectors and undone in R.
constexpr float kScaleBelow = 0x1p-16f, kScaleAbove = 0x1p16f;
// A sum of squares below this may have lost something to underflow; then the column is scaled
// again and summed anew.
constexpr float kTinySquare = 0x1p-90f;

constexpr int kColumns = 16;  // of a panel, and rows of a chunk
constexpr int kHeld = 12;     // chunks up to which a pivot is kept in registers
// Factors of stored reflectors and of columns that meet them as halves; low halves keep their bits.
constexpr float kRaise = 0x1p5f, kLower = 0x1p-5f;

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
__device__ __forceinline__ bool barrier_done(std::uint64_t* barrier) {
  std::uint32_t done;
  asm volatile(
      "{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;"
      " selp.u32 %0, 1, 0, p;}"
      : "=r"(done)
      : "r"(shared_address(barrier))
      : "memory");
  return done != 0;
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
// Leaves `to` as it is where `really` does not hold.
// Places are `offset` floats on, which the instruction adds.
__device__ __forceinline__ void load_if(bool really, float (&to)[4], const float* from,
                                        int offset) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];}"
               : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
               : "r"(shared_address(from) + 4 * offset), "r"(std::uint32_t{really})
               : "memory");
}
__device__ __forceinline__ void store_if(bool really, float* to, int offset,
                                         const float (&from)[4]) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %5, 0; @p st.shared.v4.f32 [%4], {%0, %1, %2, %3};}"
               :
               : "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3]),
                 "r"(shared_address(to) + 4 * offset), "r"(std::uint32_t{really})
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
// Over a warp; the result is known to be the same in all lanes.
__device__ __forceinline__ std::uint32_t warp_most(std::uint32_t x) {
  std::uint32_t most;
  asm volatile("redux.sync.max.u32 %0, %1, 0xffffffff;" : "=r"(most) : "r"(x));
  return most;
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
// c += a b, 16 x 8 x 16, of halves. Kept in the order of the source.
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
// Of 8 x 8 halves, two a lane.
__device__ __forceinline__ std::uint32_t transpose(std::uint32_t pair) {
  std::uint32_t turned;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(pair));
  return turned;
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
__device__ __forceinline__ std::uint32_t to_halves(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return reinterpret_cast<const std::uint32_t&>(pair);
}
__device__ __forceinline__ float2 from_halves(std::uint32_t pair) {
  return __half22float2(reinterpret_cast<const __half2&>(pair));
}
// Copies to shared memory and counts the bytes on the barrier.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, int bytes,
                                          std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
// A move in its place: moves that may change places need registers for both sides of all.
__device__ __forceinline__ void move(float& to, float from) {
  asm volatile("mov.b32 %0, %1;" : "=f"(to) : "f"(from));
}
// A select that stays one: between the registers of a lane a branch is dearer.
__device__ __forceinline__ float select(bool first, float one, float other) {
  float x;
  asm("{.reg .pred p; setp.ne.u32 p, %3, 0; selp.f32 %0, %1, %2, p;}"
      : "=f"(x)
      : "f"(one), "f"(other), "r"(std::uint32_t{first}));
  return x;
}
// --- end of instructions ---

__device__ __forceinline__ float quad_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}
// The element of row `row` of a lane's own column; `four` are rows 4 (lane % 4) ...
__device__ __forceinline__ float quad_row(const float (&four)[4], int row, int lane) {
  const bool odd = row & 1;
  const float low = select(odd, four[1], four[0]), high = select(odd, four[3], four[2]);
  return __shfl_sync(~0u, select(row & 2, high, low), (lane & 28) | (row >> 2));
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
__device__ __forceinline__ Reflector make_reflector(float alpha, float sum, float root) {
  const float size = fabsf(alpha), rough = sum * root;
  const float near = reciprocal(size + rough);  // begun before the norm is exact
  const float slip = fmaf(-rough, root, 1.0f);
  const float norm = fmaf(0.5f * rough, slip, rough), inverse = fmaf(0.5f * root, slip, root);
  const float gamma = fmaf(near, fmaf(-(size + norm), near, 1.0f), near);
  return {-copysignf(norm, alpha), fmaf(size, inverse, 1.0f), copysignf(gamma, alpha),
          copysignf(inverse, alpha)};
}

struct Remade {
  Reflector r;
  Scale scale;
  float w;
};

// Numbers as two halves each.
struct Halves {
  std::uint32_t high[4], low[4];
};
// As the left operand of a product, 16 columns by the 16 rows of a chunk.
__device__ __forceinline__ void split(std::uint32_t& high, std::uint32_t& low, float x, float y) {
  high = to_halves(x, y);
  const float2 back = from_halves(high);
  low = to_halves(x - back.x, y - back.y);
}
__device__ __forceinline__ Halves split_chunk(const float (&one)[4], const float (&other)[4]) {
  Halves h;
  split(h.high[0], h.low[0], one[0], one[1]);
  split(h.high[1], h.low[1], other[0], other[1]);
  split(h.high[2], h.low[2], one[2], one[3]);
  split(h.high[3], h.low[3], other[2], other[3]);
  return h;
}

// Where a matrix's finished reflectors are kept for columns that are not on chip: panel p has its
// T, and chunks of V as halves. Chunk k, the p-th and later ones, holds 16 rows of four pieces,
// high, high, low, low; rows and pieces are permuted for load_matrices().
constexpr int kChunkBytes = 1024, kTriangleBytes = 1024;
__host__ __device__ constexpr int kept_bytes(int chunks) {
  return kTriangleBytes + chunks * kChunkBytes;
}
__device__ __forceinline__ int piece_place(int row, int piece) {
  return row * 64 + (piece ^ (row >> 1 & 3)) * 16;
}

struct Shape {
  int m, n;
  int reflectors;
  int stride;           // of columns
  int taus;             // of a matrix
  std::int64_t matrix;  // elements from one to the next
  int warps;            // of a block
  int blocks;           // of stored reflectors
};

// A published pivot: gamma, tau gamma, two unused; then w = (0 .., alpha - beta, x), in chunks.
__host__ __device__ constexpr int slot_floats(int live) {
  return 4 + kColumns * live;
}
// Chunks that panel `panel` works on.
__host__ __device__ constexpr int live_chunks(int chunks, int panel) {
  const int whole = (chunks - panel + kStep - 1) / kStep * kStep;
  return whole < chunks ? whole : chunks;
}
__host__ __device__ constexpr int slot_place(int chunks, int panel) {
  // The first panels have all chunks, then each kStep panels kStep fewer.
  const int first = (chunks - 1) % kStep + 1;
  const int whole = panel < first ? panel : first, groups = (panel - whole) / kStep;
  const int over = panel - whole - groups * kStep, less = (chunks - 1) / kStep * kStep;
  const int live = whole * chunks + kStep * (groups * less - kStep * groups * (groups - 1) / 2) +
                   over * (less - groups * kStep);
  return kColumns * (4 * panel + kColumns * live);
}

// Chunk k of a warp is rows 16 (panel + k) ..; set s of a lane is column 8 s + lane / 4, and its
// four registers of a chunk are rows 4 (lane % 4) ...
template <int kChunks, bool kAligned, bool kKeep>
struct PanelWarp {
  static constexpr bool kHold = kChunks <= kHeld;
  static constexpr int kRowChunks = kChunks;
  float a[2][kChunks][4];
  float x[kHold ? kChunks : 1][4];
  float back[2], tau[2], diagonal[2], gamma[2], lift[2];
  float* slots;
  std::uint64_t* bars;
  const float* from;
  float* to;
  float* taus;
  char* kept;
  int m, n, stride, reflectors;
  int lane, mine;
  int warps, rank, ranks;
  int live;  // chunks of the present panel

  __device__ __forceinline__ int column(int s) const { return mine * kColumns + 8 * s + lane / 4; }
  __device__ __forceinline__ int row_in_chunk() const { return lane % 4 * 4; }

  __device__ __forceinline__ void load() {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const float* p = from + column(s) * stride + row_in_chunk();
      const int rows = column(s) < n ? m - row_in_chunk() : 0;
#pragma unroll
      for (int k = 0; k < kChunks; ++k) {
        if constexpr (kAligned) {
          float4 four = make_float4(0, 0, 0, 0);
          if (k * kColumns < rows) four = *reinterpret_cast<const float4*>(p + k * kColumns);
          a[s][k][0] = four.x, a[s][k][1] = four.y, a[s][k][2] = four.z, a[s][k][3] = four.w;
        } else {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            a[s][k][i] = k * kColumns + i < rows ? p[k * kColumns + i] : 0.0f;
        }
      }
    }
  }
  __device__ __forceinline__ void bring_in_range() {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      Scale scale{1, 1};
      const float largest = most(s);
      if (needs_scale(largest)) scale = scale_for(largest);
      back[s] = scale.back;
      multiply(s, scale.to);
    }
  }

  // Near 2^5, for halves.
  __device__ __forceinline__ void raise() {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      const Scale scale = scale_for(most(s));
      back[s] = scale.back * kLower;
      multiply(s, scale.to);
      multiply(s, kRaise);
    }
  }
  __device__ __forceinline__ float most(int s) const {
    float most = 0;
#pragma unroll
    for (int k = 0; k < kChunks; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) most = fmaxf(most, fabsf(a[s][k][i]));
    most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
    return fmaxf(most, __shfl_xor_sync(~0u, most, 2));
  }
  __device__ __forceinline__ void multiply(int s, float factor) {
#pragma unroll
    for (int k = 0; k < kChunks; ++k)
#pragma unroll
      for (int i = 0; i < 4; ++i) a[s][k][i] *= factor;
  }

  // Rows of a lane in chunk k of set s, as they are in H.
  __device__ __forceinline__ void store(int s, int row, const float (&four)[4]) const {
    if (column(s) >= n) return;
    float* p = to + column(s) * stride + row;
    if constexpr (kAligned) {
      if (row < m) *reinterpret_cast<float4*>(p) = make_float4(four[0], four[1], four[2], four[3]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (row + i < m) p[i] = four[i];
    }
  }
  // Rows that no later pivot reaches: those of R.
  __device__ __forceinline__ void emit_finished(int panel, int k) const {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      float four[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) four[i] = a[s][k][i] * back[s];
      store(s, (panel + k) * kColumns + row_in_chunk(), four);
    }
  }
  // Of the chunks with live rows, rounded up to groups of kStep; one branch leaves out the others.
  template <int kFrom = 0, class Do>
  __device__ __forceinline__ void each_chunk(const Do& act) const {
#pragma unroll
    for (int k = kFrom; k < kFrom + kStep && k < kChunks; ++k) act(k);
    if constexpr (kFrom + kStep < kChunks) {
      if (live > kFrom + kStep) each_chunk<kFrom + kStep>(act);
    }
  }

  // The same without the first group.
  template <class Do>
  __device__ __forceinline__ void after_first(const Do& act) const {
    if constexpr (kStep < kChunks) {
      if (live > kStep) each_chunk<kStep>(act);
    }
  }

  __device__ __forceinline__ void emit_own(int panel) {
    float products[2][4] = {};
    bool factored[2];
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      factored[s] = column(s) < reflectors;
      if (!factored[s]) lift[s] = back[s], gamma[s] = 1, tau[s] = 0;
      if (factored[s] && lane % 4 == 0) taus[column(s)] = tau[s];
    }
    each_chunk([&](int k) {
      float v[2][4];
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        float four[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          four[i] = v[s][i] = a[s][k][i] * lift[s] * gamma[s];
          if (!factored[s]) v[s][i] = 0;
          if (k > 0) continue;
          const int below = row_in_chunk() + i - 8 * s - lane / 4;
          if (below < 0) four[i] = a[s][k][i] * back[s], v[s][i] = 0;
          if (below == 0 && factored[s]) four[i] = diagonal[s] * back[s], v[s][i] = 1;
        }
        store(s, (panel + k) * kColumns + row_in_chunk(), four);
      }
      if constexpr (kKeep) {
        if (panel + k < kChunks) keep(panel, panel + k, v, products);
      }
    });
    if constexpr (kKeep) keep_triangle(panel, products);
  }

  // A chunk of my reflectors; and adds to the products of each with each.
  __device__ __forceinline__ void keep(int panel, int chunk, float (&v)[2][4],
                                       float (&products)[2][4]) const {
#pragma unroll
    for (int s = 0; s < 2; ++s)
#pragma unroll
      for (int i = 0; i < 4; ++i) v[s][i] *= kRaise;
    const Halves h = split_chunk(v[0], v[1]);
    char* to = kept + panel * kept_bytes(kChunks) + kTriangleBytes + chunk * kChunkBytes;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = i / 2 * 8 + lane / 4, in_piece = lane % 4 * 4;
      *reinterpret_cast<std::uint32_t*>(to + piece_place(row, i % 2) + in_piece) =
          transpose(h.high[i]);
      *reinterpret_cast<std::uint32_t*>(to + piece_place(row, 2 + i % 2) + in_piece) =
          transpose(h.low[i]);
    }
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      multiply_add(products[t], h.high, h.high[t], h.high[2 + t]);
      multiply_add(products[t], h.high, h.low[t], h.low[2 + t]);
      multiply_add(products[t], h.low, h.high[t], h.high[2 + t]);
    }
  }
  // T of H1 H2 .. = I - V T V', column after column, a lane a row; stored by columns.
  __device__ __forceinline__ void keep_triangle(int panel, const float (&products)[2][4]) const {
    float* to = reinterpret_cast<float*>(kept + panel * kept_bytes(kChunks));
    float row[kColumns];
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      float sum = 0;
#pragma unroll
      for (int k = 0; k < j; ++k)
        sum =
            fmaf(row[k],
                 __shfl_sync(~0u, products[k / 8][j / 8 * 2 + k % 2], j % 8 * 4 + k % 8 / 2), sum);
      const float t = __shfl_sync(~0u, tau[j / 8], j % 8 * 4);
      row[j] = lane > j ? 0.0f : lane == j ? t : -t * sum * (kLower * kLower);
      if (lane < kColumns) to[j * kColumns + lane] = row[j] * (kLower * kLower);
    }
  }

  __device__ __forceinline__ void load_pivot(const float* slot) {
    if constexpr (kHold) each_chunk([&](int k) { read(x[k], slot, k); });
  }
  __device__ __forceinline__ void read(float (&four)[4], const float* slot, int k) const {
    const float4 v = *reinterpret_cast<const float4*>(slot + 4 + k * kColumns + row_in_chunk());
    four[0] = v.x, four[1] = v.y, four[2] = v.z, four[3] = v.w;
  }
  // Chunk k of the pivot: as held, or from its slot.
  __device__ __forceinline__ void pivot_chunk(float (&four)[4], const float* slot, int k) const {
    if constexpr (kHold) {
#pragma unroll
      for (int i = 0; i < 4; ++i) four[i] = x[k][i];
    } else {
      read(four, slot, k);
    }
  }
  template <int kFirst>
  __device__ __forceinline__ void add_dots(float (&part)[2][4], const float* slot, int k) const {
    float p[4];
    pivot_chunk(p, slot, k);
#pragma unroll
    for (int s = kFirst; s < 2; ++s)
#pragma unroll
      for (int i = 0; i < 4; ++i) part[s][i] = fmaf(p[i], a[s][k][i], part[s][i]);
  }
  __device__ __forceinline__ static float four_sum(const float (&part)[4]) {
    return (part[0] + part[1]) + (part[2] + part[3]);
  }
  // Of the pivot with sets kFirst .. 1, over the four lanes of a column.
  template <int kFirst>
  __device__ __forceinline__ void dots(const float* slot, float (&d)[2]) const {
    float part[2][4] = {};
    each_chunk([&](int k) { add_dots<kFirst>(part, slot, k); });
#pragma unroll
    for (int s = kFirst; s < 2; ++s) d[s] = quad_sum(four_sum(part[s]));
  }

  // Applies the pivots of another warp's panel.
  __device__ __forceinline__ void follow(int panel, int count) {
    const float* slot = slots + slot_place(kChunks, panel);
    std::uint64_t* bar = bars + panel * kColumns;
    // A warp on the scheduler of the one that makes the pivots would delay it.
    const bool beside = panel / warps % ranks == rank && (mine % warps - panel % warps) % 4 == 0;
    barrier_wait(beside ? bar + count - 1 : bar);
    load_pivot(slot);
#pragma unroll 1
    for (int c = 0; c < count; ++c) {
      const float2 factors = *reinterpret_cast<const float2*>(slot);
      float d[2];
      dots<0>(slot, d);
      const float* next = slot + slot_floats(live);
      const bool ready = c + 1 < count && barrier_done(bar + c + 1);
#pragma unroll
      for (int s = 0; s < 2; ++s) d[s] = -factors.y * d[s] * factors.x;
      each_chunk([&](int k) {
        float p[4];
        pivot_chunk(p, slot, k);
#pragma unroll
        for (int s = 0; s < 2; ++s)
#pragma unroll
          for (int i = 0; i < 4; ++i) a[s][k][i] = fmaf(d[s], p[i], a[s][k][i]);
        if constexpr (kHold) load_if(ready, x[k], next + row_in_chunk(), 4 + k * kColumns);
      });
      slot = next;
      if (!ready && c + 1 < count) {
        barrier_wait(bar + c + 1);
        load_pivot(slot);
      }
    }
  }

  // A chunk of column c of my panel, below its diagonal, as the next pivot.
  template <int kHalf>
  __device__ __forceinline__ void publish(bool really, float* slot, int k, int c) const {
    float four[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) four[i] = k > 0 || row_in_chunk() + i > c ? a[kHalf][k][i] : 0.0f;
    store_if(really && lane / 4 == c % 8, slot + row_in_chunk(), 4 + k * kColumns, four);
  }
  // Adds the squares of a chunk of set kHalf below row c.
  template <int kHalf>
  __device__ __forceinline__ void add_squares(float (&part)[4], int k, int c) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float v = k > 0 || row_in_chunk() + i > c ? a[kHalf][k][i] : 0.0f;
      part[i] = fmaf(v, v, part[i]);
    }
  }
  // A pivot whose squares underflow, or of zeros: its slot is scaled, and its reflector made anew.
  __device__ __forceinline__ Remade remake(float* slot, float alpha, int group) const {
    const int end = slot_floats(live);
    float most = 0, sum = 0;
#pragma unroll 1
    for (int i = 4 + lane; i < end; i += 32) most = fmaxf(most, fabsf(slot[i]));
    most = __uint_as_float(warp_most(__float_as_uint(most)));
    const Scale scale = scale_for(fmaxf(most, fabsf(alpha)));
#pragma unroll 1
    for (int i = 4 + lane; i < end; i += 32) {
      const float x = slot[i] * scale.to;
      sum = fmaf(x, x, sum);
    }
    for (int level = 16; level > 0; level >>= 1) sum += __shfl_xor_sync(~0u, sum, level);
    __syncwarp();  // all have read the slot
    if (lane / 4 == group) {
#pragma unroll 1
      for (int i = 4 + lane % 4; i < end; i += 4) slot[i] *= scale.to;
    }
    __syncwarp();
    alpha *= scale.to;
    sum = fmaf(alpha, alpha, sum);
    const Reflector r = make_reflector(alpha, sum, reciprocal_root(sum));
    return {r, scale, alpha - r.beta};
  }

  // Chunk k meets the pivot, adds its squares, and as a part of the next pivot, column c, goes out
  // to `next` and comes back.
  template <int kHalf>
  __device__ __forceinline__ void turn_over(int k, const float (&u)[2], const float* slot,
                                            float* next, int c, bool more, float (&squares)[4]) {
    float p[4];
    pivot_chunk(p, slot, k);
#pragma unroll
    for (int i = 0; i < 4; ++i) a[kHalf][k][i] = fmaf(u[kHalf], p[i], a[kHalf][k][i]);
    publish<kHalf>(more, next, k, c);
    add_squares<kHalf>(squares, k, c);
    if constexpr (kHalf == 0) {
#pragma unroll
      for (int i = 0; i < 4; ++i) a[1][k][i] = fmaf(u[1], p[i], a[1][k][i]);
    }
    __syncwarp();
    if constexpr (kHold) load_if(more, x[k], next + row_in_chunk(), 4 + k * kColumns);
  }

  // Columns 8 kHalf .. 8 kHalf + 7 of my panel, each applied to those after it. The first chunks
  // come last, so that what the chain of pivots waits for stands in one piece.
  template <int kHalf>
  __device__ __forceinline__ void factor_half(int panel, int count) {
    const int end = min(8 * kHalf + 8, count);
    int c = 8 * kHalf;
    if (c >= end) return;
    float* next = slots + slot_place(kChunks, panel) + c * slot_floats(live);
    // The first pivot is preceded by one of zeros. Where it is read from its slot that is the slot
    // of the second: in its own a lane could still read while another already writes.
    float* slot = next + slot_floats(live);
    float u[2] = {};
    const float zeros[4] = {};
    each_chunk([&](int k) {
      if constexpr (kHold)
        x[k][0] = x[k][1] = x[k][2] = x[k][3] = 0;
      else
        store_if(lane < 4, slot + row_in_chunk(), 4 + k * kColumns, zeros);
    });
    __syncwarp();
#pragma unroll 1
    for (;; ++c) {
      if (kHalf == 1 && c == kColumns) break;
      const bool more = c < end;
      float squares[4] = {}, dot[2][4] = {};
      after_first([&](int k) { turn_over<kHalf>(k, u, slot, next, c, more, squares); });
#pragma unroll
      for (int k = 0; k < kStep && k < kChunks; ++k)
        turn_over<kHalf>(k, u, slot, next, c, more, squares);
      if (c == end) break;
      slot = next;
      next += slot_floats(live);
      const int group = c % 8;
      const float mine_squared = four_sum(squares);
      float quarter[4], top[2], d[2];
#pragma unroll
      for (int q = 0; q < 4; ++q) quarter[q] = __shfl_sync(~0u, mine_squared, 4 * group + q);
#pragma unroll
      for (int s = kHalf; s < 2; ++s) top[s] = quad_row(a[s][0], c, lane);
      const float alpha = __shfl_sync(~0u, top[kHalf], 4 * group);
      after_first([&](int k) { add_dots<kHalf>(dot, slot, k); });
      const float square = four_sum(quarter), sum = fmaf(alpha, alpha, square);
      Reflector r = make_reflector(alpha, sum, reciprocal_root(sum));
#pragma unroll
      for (int k = 0; k < kStep && k < kChunks; ++k) add_dots<kHalf>(dot, slot, k);
#pragma unroll
      for (int s = kHalf; s < 2; ++s) d[s] = quad_sum(four_sum(dot[s]));
      float w = alpha - r.beta, lift_now = 1, undo = 1;
      if (__builtin_expect(square < kTinySquare, 0)) {
        if (below_is_zero(slot)) {
          r = {alpha, 0, 0, 0};
          w = 0;
        } else {
          const Remade again = remake(slot, alpha, group);
          r = again.r;
          lift_now = again.scale.to;
          undo = again.scale.back;
          w = again.w;
          load_pivot(slot);
          dots<kHalf>(slot, d);
          __syncwarp();  // all have read the slot
        }
      }
      // Where the last chunk to be read is followed by no other, w waits for those who read it.
      if constexpr (!kHold || kStep == 1) __syncwarp();
      if (lane == 4 * group) {
        slot[4 + c] = w;
        *reinterpret_cast<float2*>(slot) = make_float2(r.gamma, r.over_norm);
      }
      __syncwarp();
      if (lane / 4 == group) {
        barrier_arrive(bars + panel * kColumns + c);
        tau[kHalf] = r.tau;
        diagonal[kHalf] = r.beta * undo;
        gamma[kHalf] = r.gamma;
        lift[kHalf] = lift_now;
      }
      if constexpr (kHold) {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (row_in_chunk() + i == c) x[0][i] = w;
      }
#pragma unroll
      for (int s = kHalf; s < 2; ++s) u[s] = -r.over_norm * fmaf(w, top[s], d[s]) * r.gamma;
      if (lane / 4 <= group) u[kHalf] = 0;
    }
  }
  __device__ __forceinline__ bool below_is_zero(const float* slot) const {
    std::uint32_t bits = 0;
    each_chunk([&](int k) {
      float p[4];
      pivot_chunk(p, slot, k);
#pragma unroll
      for (int i = 0; i < 4; ++i) bits |= __float_as_uint(p[i]);
    });
    return !__any_sync(~0u, bits << 1);
  }

  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (int panel = 0;; ++panel) {
      const int count = min(kColumns, reflectors - panel * kColumns);
      live = live_chunks(kChunks, panel);
      if (panel == mine) {
        factor_half<0>(panel, count);
        factor_half<1>(panel, count);
        emit_own(panel);
        return;
      }
      follow(panel, count);
      if ((panel + 1) * kColumns >= reflectors) {
#pragma unroll
        for (int k = 0; k < kChunks; ++k) emit_finished(panel, k);
        return;
      }
      emit_finished(panel, 0);
#pragma unroll
      for (int s = 0; s < 2; ++s)
#pragma unroll
        for (int k = 0; k < kChunks; ++k)
#pragma unroll
          for (int i = 0; i < 4; ++i) move(a[s][k][i], k + 1 < kChunks ? a[s][k + 1][i] : 0.0f);
    }
  }
};

// Takes the pivots made here to the other blocks of the cluster. Bulk copies would do it with less
// code, but the fence before each holds up the warp that makes the pivots by a hundred clocks.
template <class Warp>
__device__ __forceinline__ void send_pivots(const Warp& w) {
  const int last = (w.n - 1) / kColumns, deal = w.warps * w.ranks;
#pragma unroll 1
  for (int panel = w.rank * w.warps; panel * kColumns < w.reflectors; ++panel) {
    if (panel / w.warps % w.ranks != w.rank) continue;
    const int floats = slot_floats(live_chunks(Warp::kRowChunks, panel));
    float* slot = w.slots + slot_place(Warp::kRowChunks, panel);
    const int end = min((panel + 1) * kColumns, w.reflectors);
#pragma unroll 1
    for (int j = panel * kColumns; j < end; ++j, slot += floats) {
      barrier_wait(w.bars + j);
#pragma unroll 1
      for (int peer = 0; peer < w.ranks; ++peer) {
        // Only where a later panel is made.
        const int later = (last / deal * w.ranks + peer) * w.warps;
        const bool wants = (later <= last ? later + w.warps : later - deal + w.warps) > panel;
        if (peer == w.rank || !wants) continue;
#pragma unroll 1
        for (int i = w.lane; i < floats / 4; i += 32) {
          float4* place = reinterpret_cast<float4*>(slot) + i;
          send(place, *place, w.bars + j, peer);
        }
      }
    }
  }
}

// Factors the matrices, a cluster each: panel p by warp p % warps of block p / warps % ranks. Where
// there are several blocks one more warp sends the pivots on.
template <int kChunks, int kThreads, bool kAligned, bool kKeep>
__global__ void __launch_bounds__(kThreads, 1)
    factor_columns(const float* a, float* h, float* tau, char* kept, Shape shape) {
  extern __shared__ float4 shared_memory[];
  PanelWarp<kChunks, kAligned, kKeep> w;
  // Through reductions: what depends on them is then known to be the same for a warp, so that no
  // branch is guarded.
  w.rank = static_cast<int>(warp_most(cluster_rank()));
  w.ranks = static_cast<int>(warp_most(cluster_size()));
  const std::int64_t matrix = blockIdx.x / w.ranks;
  w.from = a + matrix * shape.matrix;
  w.to = h + matrix * shape.matrix;
  w.taus = tau + matrix * shape.taus;
  w.kept = kept + matrix * (shape.blocks * kept_bytes(kChunks));
  w.m = shape.m, w.n = shape.n, w.stride = shape.stride, w.reflectors = shape.reflectors;
  w.warps = shape.warps;
  w.lane = threadIdx.x % 32;
  w.bars = reinterpret_cast<std::uint64_t*>(shared_memory);
  w.slots = reinterpret_cast<float*>(w.bars + (shape.reflectors + 1) / 2 * 2);
  // The four lanes that write a pivot arrive, or the copy of one that another block makes.
  const auto copied = [&](int i) { return i / kColumns / w.warps % w.ranks != w.rank; };
  for (int i = threadIdx.x; i < shape.reflectors; i += blockDim.x)
    barrier_init(&w.bars[i], copied(i) ? 1 : 4);
  // One lane initialises for its warp, as the machine code has it.
  __syncwarp();
  for (int i = threadIdx.x; i < shape.reflectors; i += blockDim.x)
    if (copied(i)) barrier_expect(&w.bars[i], 4 * slot_floats(live_chunks(kChunks, i / kColumns)));
  fence_barrier_init();
  const int warp = static_cast<int>(warp_most(threadIdx.x / 32));
  bool begun = false;
  w.mine = w.rank * w.warps + warp;
#pragma unroll 1
  for (; warp < w.warps && w.mine * kColumns < w.n; w.mine += w.warps * w.ranks) {
    w.load();
    if (!begun) cluster_sync();  // the barriers stand
    begun = true;
    w.bring_in_range();
    w.run();
  }
  if (!begun) cluster_sync();
  if (warp == w.warps) send_pivots(w);
  // Shared memory that a block still copies from or into stays.
  if (w.ranks > 1) cluster_sync();
}

// --- kept reflectors meet the columns that were not on chip ---

// Chunks of V of block `block`; those above it are zeros.
__host__ __device__ constexpr int kept_chunks(int chunks, int block) {
  return chunks - block / kCut * kCut;
}
__host__ __device__ constexpr int kept_place(int chunks, int block) {
  int place = 0;
  for (int b = 0; b < block; ++b) place += kept_chunks(chunks, b) * kChunkBytes;
  return place;
}

template <int kChunks, bool kAligned>
struct BlockWarp : PanelWarp<kChunks, kAligned, false> {
  using Base = PanelWarp<kChunks, kAligned, false>;
  using Base::a;
  using Base::lane;
  const char* stored;  // V in shared memory
  int blocks;

  // kFirst: the first chunk that the block and its neighbours work on.
  template <int kFirst>
  __device__ __forceinline__ void meet(int block) {
    const char* v = stored + kept_place(kChunks, block);
    const auto* t = reinterpret_cast<const float2*>(Base::kept + block * kept_bytes(kChunks));
    float2 triangle[2][2];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int k = 0; k < 2; ++k) triangle[n][k] = t[(n * 8 + lane / 4) * 8 + k * 4 + lane % 4];
    barrier_wait(Base::bars + block);
    float sums[3][2][4] = {};
    const char* high_place = v + piece_place(lane % 16, lane / 16);
    const char* low_place = v + piece_place(lane % 16, lane / 16 + 2);
    std::uint32_t high[2][4], low[2][4];
    load_transposed(high[0], high_place);
    load_transposed(low[0], low_place);
#pragma unroll
    for (int k = kFirst; k < kChunks; ++k) {
      const int now = (k - kFirst) % 2;
      if (k + 1 < kChunks) {  // the next chunk's come while this one is multiplied
        load_transposed(high[1 - now], high_place + (k + 1 - kFirst) * kChunkBytes);
        load_transposed(low[1 - now], low_place + (k + 1 - kFirst) * kChunkBytes);
      }
      const Halves p = split_chunk(a[0][k], a[1][k]);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        multiply_add(sums[0][n], p.high, high[now][2 * n], high[now][2 * n + 1]);
        multiply_add(sums[1][n], p.high, low[now][2 * n], low[now][2 * n + 1]);
        multiply_add(sums[2][n], p.low, high[now][2 * n], high[now][2 * n + 1]);
      }
    }
    float w[2][4] = {};
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      float sum[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) sum[i] = sums[0][k][i] + (sums[1][k][i] + sums[2][k][i]);
      std::uint32_t high[4], low[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) cut(high[i], low[i], sum[i % 2 * 2 + i / 2]);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        std::uint32_t h0, l0, h1, l1;
        cut(h0, l0, triangle[n][k].x);
        cut(h1, l1, triangle[n][k].y);
        multiply_add_tf32(w[n], high, h0, h1);
        multiply_add_tf32(w[n], high, l0, l1);
        multiply_add_tf32(w[n], low, h0, h1);
        multiply_add_tf32(w[n], low, l0, l1);
      }
    }
    Halves y;
    split(y.high[0], y.low[0], w[0][0], w[0][1]);
    split(y.high[1], y.low[1], w[0][2], w[0][3]);
    split(y.high[2], y.low[2], w[1][0], w[1][1]);
    split(y.high[3], y.low[3], w[1][2], w[1][3]);
    const int row = lane / 16 * 8 + lane % 8, piece = lane / 8 % 2;
    high_place = v + piece_place(row, piece);
    low_place = v + piece_place(row, piece + 2);
    load_matrices(high[0], high_place);
    load_matrices(low[0], low_place);
    // Two chunks at a time: four sums under way.
#pragma unroll
    for (int k = kFirst; k < kChunks; k += 2) {
      const bool two = k + 1 < kChunks;
      const int at = (k - kFirst) * kChunkBytes;
      if (two) {
        load_matrices(high[1], high_place + at + kChunkBytes);
        load_matrices(low[1], low_place + at + kChunkBytes);
      }
      float change[2][2][4] = {};
#pragma unroll
      for (int product = 0; product < 3; ++product)
#pragma unroll
        for (int c = 0; c < (two ? 2 : 1); ++c)
#pragma unroll
          for (int t = 0; t < 2; ++t) {
            const auto& left = product == 0 ? y.low : y.high;
            const auto& right = product == 1 ? low[c] : high[c];
            multiply_add(change[c][t], left, right[2 * t], right[2 * t + 1]);
          }
      if (k + 2 < kChunks) {
        load_matrices(high[0], high_place + at + 2 * kChunkBytes);
        load_matrices(low[0], low_place + at + 2 * kChunkBytes);
      }
#pragma unroll
      for (int c = 0; c < (two ? 2 : 1); ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          a[0][k + c][i] -= change[c][i / 2][i % 2];
          a[1][k + c][i] -= change[c][i / 2][2 + i % 2];
        }
    }
  }
  __device__ __forceinline__ static void cut(std::uint32_t& high, std::uint32_t& low, float x) {
    high = __float_as_uint(x) & 0xffffe000u;
    low = __float_as_uint(x - __uint_as_float(high));
  }
  template <int kFirst>
  __device__ __forceinline__ void meet_from(int block) {
#pragma unroll 1
    for (int end = min(blocks, kFirst + kCut); block < end; ++block) meet<kFirst>(block);
    if constexpr (kFirst + kCut < kChunks) {
      if (block < blocks) meet_from<kFirst + kCut>(block);
    }
  }
};

constexpr int kBlockWarps = 4;

template <int kChunks, bool kAligned>
__global__ void __launch_bounds__(32 * kBlockWarps, 1)
    apply_columns(const float* a, float* h, char* kept, Shape shape) {
  extern __shared__ float4 shared_memory[];
  BlockWarp<kChunks, kAligned> w;
  const int groups = (shape.n + kBlockWarps * kColumns - 1) / (kBlockWarps * kColumns);
  const std::int64_t matrix = blockIdx.x / groups;
  w.from = a + matrix * shape.matrix;
  w.to = h + matrix * shape.matrix;
  w.kept = kept + matrix * (shape.blocks * kept_bytes(kChunks));
  w.m = shape.m, w.n = shape.n, w.stride = shape.stride;
  w.blocks = shape.blocks;
  w.lane = threadIdx.x % 32;
  w.mine = blockIdx.x % groups * kBlockWarps + static_cast<int>(warp_most(threadIdx.x / 32));
  w.bars = reinterpret_cast<std::uint64_t*>(shared_memory);
  char* stored = reinterpret_cast<char*>(w.bars + (shape.blocks + 15) / 16 * 16);
  w.stored = stored;
  if (threadIdx.x == 0) {
    for (int b = 0; b < shape.blocks; ++b) barrier_init(w.bars + b, 1);
    fence_barrier_init();
    for (int b = 0; b < shape.blocks; ++b) {
      const int bytes = (kChunks - b) * kChunkBytes;
      barrier_expect(w.bars + b, bytes);
      copy_bulk(stored + kept_place(kChunks, b) + b % kCut * kChunkBytes,
                w.kept + b * kept_bytes(kChunks) + kTriangleBytes + b * kChunkBytes, bytes,
                w.bars + b);
    }
  }
  w.load();
  for (int b = 0; b < shape.blocks; ++b)
    for (int i = threadIdx.x; i < b % kCut * (kChunkBytes / 16); i += blockDim.x)
      reinterpret_cast<float4*>(stored + kept_place(kChunks, b))[i] = make_float4(0, 0, 0, 0);
  w.raise();
  __syncthreads();
  w.template meet_from<0>(0);
#pragma unroll
  for (int k = 0; k < kChunks; ++k) w.emit_finished(0, k);
}

// --- the plan ---

struct Job {
  kbeam::Plan& plan;
  kbeam::DeviceTensor<const float> a;
  kbeam::DeviceTensor<float> h, tau;
  int batch, m, n;
};
// A part of the matrices, from row and column `first` on.
struct Part {
  kbeam::DevicePointer<const float> a;
  kbeam::DevicePointer<float> h, tau;
  int m, n;
};

// Warps of a block that leave a thread the registers it needs.
template <int kChunks>
constexpr int kMostWarps = kChunks <= kHeld ? 11 : 8;

template <int kChunks, bool kKeep>
auto* choose_kernel(bool aligned, int warps) {
  if (!aligned) return factor_columns<kChunks, 32 * kMostWarps<kChunks>, false, kKeep>;
  if (warps > 8) return factor_columns<kChunks, 32 * kMostWarps<kChunks>, true, kKeep>;
  return factor_columns<kChunks, 32 * 8, true, kKeep>;
}

// Factors the first `columns` columns, and takes them to the others. Returns the reflectors made.
template <int kChunks>
int plan_part(Job& job, const Part& part, int columns) {
  const int panels = (columns + kColumns - 1) / kColumns;
  const bool rest = columns < part.n, aligned = job.m % 4 == 0;
  int ranks = 1, own = std::min(panels, kMostWarps<kChunks>);
  // With multiprocessors to spare no two warps share a scheduler.
  while (ranks < kMostRanks && panels > ranks * kRankWarps &&
         job.batch * (ranks + 1) <= job.plan.device().multiprocessors)
    ++ranks;
  if (ranks > 1) own = kRankWarps;
  const int warps = own + (ranks > 1);
  Shape shape{part.m, columns};
  shape.reflectors = std::min(part.m, columns);
  shape.stride = job.m;
  shape.taus = std::min(job.m, job.n);
  shape.matrix = std::int64_t{job.m} * job.n;
  shape.warps = own;
  shape.blocks = (shape.reflectors + kColumns - 1) / kColumns;
  auto kept = job.plan.scratch<char>(
      rest ? std::int64_t{job.batch} * shape.blocks * kept_bytes(kChunks) : 16);
  job.plan.launch(
      rest ? choose_kernel<kChunks, true>(aligned, warps)
           : choose_kernel<kChunks, false>(aligned, warps),
      {.grid = job.batch * ranks,
       .block = 32 * warps,
       .cluster = {ranks, 1},
       .shared_bytes =
           (shape.reflectors + 1) / 2 * 16 +
           4 * (slot_place(kChunks, shape.blocks) +
                // The slot after the last may hold the zeros before the last pivot.
                (kChunks > kHeld ? slot_floats(live_chunks(kChunks, shape.blocks - 1)) : 0))},
      part.a, part.h, part.tau, kept, shape);
  if (rest) {
    shape.n = part.n - columns;
    const int groups = (shape.n + kBlockWarps * kColumns - 1) / (kBlockWarps * kColumns);
    const std::int64_t on = std::int64_t{columns} * job.m;
    job.plan.launch(
        aligned ? apply_columns<kChunks, true> : apply_columns<kChunks, false>,
        {.grid = job.batch * groups,
         .block = 32 * kBlockWarps,
         .shared_bytes = (shape.blocks + 15) / 16 * 128 + kept_place(kChunks, shape.blocks)},
        part.a + on, part.h + on, kept, shape);
  }
  return shape.reflectors;
}

constexpr int kChip = 176;  // columns that one cluster factors, at most twice as many rows

void plan_parts(Job& job) {
  Part part{job.a, job.h, job.tau, job.m, job.n};
  while (part.m > 0 && part.n > 0) {
    int done;
    if (part.m <= kChip) {
      done = plan_part<11>(job, part, part.n);
    } else {
      // No more than leaves a square for the next part.
      const int columns =
          std::max(part.m, part.n) <= 2 * kChip
              ? (std::max(part.m, part.n) - kChip + kColumns - 1) / kColumns * kColumns
              : kChip;
      done = plan_part<22>(job, part, std::min(columns, part.n));
    }
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
  if (job.m > 2 * kChip)
    plan.not_supported("columns of more than 352 rows do not fit on chip here");
  else
    plan_parts(job);
}
