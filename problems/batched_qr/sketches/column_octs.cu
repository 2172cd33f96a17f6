// Householder QR of matrices that stay in the registers of a cluster: a warp owns sixteen columns,
// eight lanes each, four at a time. A warp meets each pivot in one pass: chunk by chunk the pivot
// before is taken to its columns, the new one takes its place, and the dots begin. So does the warp
// that makes the pivots; there the new one comes by exchanges from the lanes that hold it.
#include <cuda_fp16.h>
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kStep, 4, 2, 4, 6);       // chunks of rows that are left out together
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
constexpr int kSets = 4;      // of four columns
// A pivot is written by the lanes of its column, each of which arrives for it; one for all would be
// as right and as fast, but not every tool knows.
constexpr int kArrivals = 8;
// Factors of stored reflectors and of columns that meet them as halves; low halves keep their bits.
constexpr float kRaise = 0x1p5f, kLower = 0x1p-5f;

// --- instructions ---
__device__ __forceinline__ std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
// The address of a barrier. Opaque, so that it is not made anew for every use.
using Barrier = std::uint32_t;
__device__ __forceinline__ Barrier barrier_at(const std::uint64_t* barrier) {
  Barrier address;
  asm volatile("mov.b32 %0, %1;" : "=r"(address) : "r"(shared_address(barrier)));
  return address;
}
__device__ __forceinline__ Barrier later(Barrier barrier, int count) {
  return barrier + 8 * count;
}
__device__ __forceinline__ void barrier_init(Barrier barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_arrive(Barrier barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ __forceinline__ void barrier_expect(Barrier barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ bool barrier_done(Barrier barrier) {
  std::uint32_t done;
  asm volatile(
      "{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0;"
      " selp.u32 %0, 1, 0, p;}"
      : "=r"(done)
      : "r"(barrier)
      : "memory");
  return done != 0;
}
__device__ __forceinline__ void barrier_wait(Barrier barrier) {
  std::uint32_t done = 0;
  while (!done)
    asm volatile(
        "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
        " selp.u32 %0, 1, 0, p;}"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
}
__device__ __forceinline__ int lane_of_warp() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
// Writes to the same place in the shared memory of block `rank`, and counts the bytes on its
// barrier.
__device__ __forceinline__ void send(float4* place, float4 value, Barrier barrier, int rank) {
  std::uint32_t to, on;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(to)
               : "r"(shared_address(place)), "r"(rank));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(on) : "r"(barrier), "r"(rank));
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
      "[%5];" ::"r"(to),
      "r"(__float_as_uint(value.x)), "r"(__float_as_uint(value.y)), "r"(__float_as_uint(value.z)),
      "r"(__float_as_uint(value.w)), "r"(on)
      : "memory");
}
// The place is `offset` floats on, which the instruction adds.
__device__ __forceinline__ void store_if(bool really, float* to, int offset,
                                         const float (&from)[2]) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %3, 0; @p st.shared.v2.f32 [%2], {%0, %1};}"
               :
               : "f"(from[0]), "f"(from[1]), "r"(shared_address(to) + 4 * offset),
                 "r"(std::uint32_t{really})
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
// For branches that then need no guard.
__device__ __forceinline__ int same_in_warp(int x) {
  return static_cast<int>(warp_most(static_cast<std::uint32_t>(x)));
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
// The first, or the second, halves of two pairs.
__device__ __forceinline__ std::uint32_t first_halves(std::uint32_t x, std::uint32_t y) {
  return __byte_perm(x, y, 0x5410);
}
__device__ __forceinline__ std::uint32_t second_halves(std::uint32_t x, std::uint32_t y) {
  return __byte_perm(x, y, 0x7632);
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
__device__ __forceinline__ void copy_bulk(void* to, const void* from, int bytes, Barrier barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(barrier)
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

// Over the eight lanes of a column, of sets kFirst .. at once, with `between` after each level.
template <int kFirst, class Between>
__device__ __forceinline__ void oct_sums(float (&x)[kSets], const Between& between) {
#pragma unroll
  for (int level = 0; level < 3; ++level) {
    float other[kSets];
#pragma unroll
    for (int s = kFirst; s < kSets; ++s) other[s] = __shfl_xor_sync(~0u, x[s], 1 << level);
    between(level);
#pragma unroll
    for (int s = kFirst; s < kSets; ++s) x[s] += other[s];
  }
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

// Numbers as two halves each.
struct Halves {
  std::uint32_t high[4], low[4];
};
__device__ __forceinline__ void split(std::uint32_t& high, std::uint32_t& low, float x, float y) {
  high = to_halves(x, y);
  const float2 back = from_halves(high);
  low = to_halves(x - back.x, y - back.y);
}

// Where a matrix's finished reflectors are kept for columns that are not on chip: panel p has its
// T, and chunks of V as halves, both with the reflectors in the order of kept_order(). Chunk k, the
// p-th and later ones, holds 16 rows of four pieces, high, high, low, low; rows and pieces are
// permuted for load_matrices().
constexpr int kChunkBytes = 1024, kTriangleBytes = 1024;
__host__ __device__ constexpr int kept_bytes(int chunks) {
  return kTriangleBytes + chunks * kChunkBytes;
}
__device__ __forceinline__ int piece_place(int row, int piece) {
  return row * 64 + (piece ^ (row >> 1 & 3)) * 16;
}

// Where reflector j of a panel stands among the sixteen.
__device__ __forceinline__ constexpr int kept_order(int j) {
  return j / 8 * 8 + j % 4 * 2 + j / 4 % 2;
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

// Chunk k of a warp is rows 16 (panel + k) ..; set s of a lane is column 4 s + lane / 8, and its
// two registers of a chunk are rows 2 (lane % 8) ...
template <int kChunks, bool kAligned, bool kKeep>
struct PanelWarp {
  static constexpr int kRowChunks = kChunks;
  float a[kSets][kChunks][2];
  // A pivot that the columns have not met yet: what they should be is a + u x. Chunks without live
  // rows hold anything finite, and meet zeros.
  float x[kChunks][2], u[kSets];
  float back, tau, gamma, lift, diagonal;  // of column `lane` of the panel
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

  __device__ __forceinline__ int in_panel(int s) const { return 4 * s + lane / 8; }
  __device__ __forceinline__ int column(int s) const { return mine * kColumns + in_panel(s); }
  __device__ __forceinline__ int row_in_chunk() const { return lane % 8 * 2; }

  __device__ __forceinline__ void load() {
#pragma unroll
    for (int s = 0; s < kSets; ++s) {
      const float* p = from + column(s) * stride + row_in_chunk();
      const int rows = column(s) < n ? m - row_in_chunk() : 0;
#pragma unroll
      for (int k = 0; k < kChunks; ++k) {
        if constexpr (kAligned) {
          float2 two = make_float2(0, 0);
          if (k * kColumns < rows) two = *reinterpret_cast<const float2*>(p + k * kColumns);
          a[s][k][0] = two.x, a[s][k][1] = two.y;
        } else {
#pragma unroll
          for (int i = 0; i < 2; ++i)
            a[s][k][i] = k * kColumns + i < rows ? p[k * kColumns + i] : 0.0f;
        }
      }
      u[s] = 0;
    }
#pragma unroll
    for (int k = 0; k < kChunks; ++k) x[k][0] = x[k][1] = 0;
  }
  __device__ __forceinline__ void bring_in_range() {
#pragma unroll
    for (int s = 0; s < kSets; ++s) {
      float most = 0;
#pragma unroll
      for (int k = 0; k < kChunks; ++k)
        most = fmaxf(most, fmaxf(fabsf(a[s][k][0]), fabsf(a[s][k][1])));
#pragma unroll
      for (int distance = 1; distance < 8; distance *= 2)
        most = fmaxf(most, __shfl_xor_sync(~0u, most, distance));
      Scale scale{1, 1};
      if (needs_scale(most)) scale = scale_for(most);
#pragma unroll
      for (int k = 0; k < kChunks; ++k) a[s][k][0] *= scale.to, a[s][k][1] *= scale.to;
      const float of_lane = __shfl_sync(~0u, scale.back, lane % 4 * 8);
      if (lane / 4 % 4 == s) back = of_lane;
    }
  }

  // Rows of a lane in a set, as they are in H.
  __device__ __forceinline__ void store(int s, int row, const float (&two)[2]) const {
    if (column(s) >= n) return;
    float* p = to + column(s) * stride + row;
    if constexpr (kAligned) {
      if (row < m) *reinterpret_cast<float2*>(p) = make_float2(two[0], two[1]);
    } else {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        if (row + i < m) p[i] = two[i];
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
  __device__ __forceinline__ void take_to_columns(int k) {
#pragma unroll
    for (int s = 0; s < kSets; ++s)
#pragma unroll
      for (int i = 0; i < 2; ++i) a[s][k][i] = fmaf(u[s], x[k][i], a[s][k][i]);
  }
  // Rows that no later pivot reaches: those of R.
  __device__ __forceinline__ void emit_finished(int panel, int chunks) const {
#pragma unroll
    for (int s = 0; s < kSets; ++s) {
      const float up = __shfl_sync(~0u, back, in_panel(s));
#pragma unroll
      for (int k = 0; k < kChunks; ++k) {
        if (k >= chunks) break;
        const float two[2] = {a[s][k][0] * up, a[s][k][1] * up};
        store(s, (panel + k) * kColumns + row_in_chunk(), two);
      }
    }
  }

  template <int kFirst>
  __device__ __forceinline__ void add_dots(float (&part)[kSets][2], int from_chunk) const {
#pragma unroll
    for (int k = from_chunk; k < from_chunk + kStep && k < kChunks; ++k)
#pragma unroll
      for (int s = kFirst; s < kSets; ++s)
#pragma unroll
        for (int i = 0; i < 2; ++i) part[s][i] = fmaf(x[k][i], a[s][k][i], part[s][i]);
  }
  // Groups of chunks from the last with live rows to the first: sets kFirst .. meet what x was,
  // `bring` makes it the next pivot, and the dots of that follow a group behind. Those of the first
  // group are left to the caller.
  template <int kFirst, int kFrom = (kChunks - 1) / kStep* kStep, class Bring>
  __device__ __forceinline__ void meet(const Bring& bring, float (&part)[kSets][2]) {
    if (kFrom == 0 || live > kFrom) {
#pragma unroll
      for (int k = kFrom; k < kFrom + kStep && k < kChunks; ++k) {
#pragma unroll
        for (int s = kFirst; s < kSets; ++s)
#pragma unroll
          for (int i = 0; i < 2; ++i) a[s][k][i] = fmaf(u[s], x[k][i], a[s][k][i]);
        bring(k);
      }
      if constexpr (kFrom > 0) add_dots<kFirst>(part, kFrom + kStep);
    }
    if constexpr (kFrom > 0) meet<kFirst, kFrom - kStep>(bring, part);
  }
  template <int kFirst, class Between>
  __device__ __forceinline__ static void finish_dots(const float (&part)[kSets][2],
                                                     float (&d)[kSets], const Between& between) {
#pragma unroll
    for (int s = kFirst; s < kSets; ++s) d[s] = part[s][0] + part[s][1];
    oct_sums<kFirst>(d, between);
  }

  // Meets the pivots of another warp's panel; the last stays in x.
  __device__ __forceinline__ void follow(int panel, int count) {
    const float* slot = slots + slot_place(kChunks, panel);
    Barrier bar = barrier_at(bars + panel * kColumns);
    // A warp on the scheduler of the one that makes the pivots would delay it.
    const bool beside = panel / warps % ranks == rank && (mine % warps - panel % warps) % 4 == 0;
    bool ready = false;
    live = same_in_warp(live);
    if (beside) barrier_wait(later(bar, count - 1));
#pragma unroll 1
    for (int c = 0; c < count; ++c, slot += slot_floats(live)) {
      if (!ready) barrier_wait(bar);
      bar = later(bar, 1);
      const float2 factors = *reinterpret_cast<const float2*>(slot);
      float part[kSets][2] = {}, d[kSets];
      meet<0>(
          [&](int k) {
            const float2 v =
                *reinterpret_cast<const float2*>(slot + 4 + k * kColumns + row_in_chunk());
            x[k][0] = v.x, x[k][1] = v.y;
          },
          part);
      add_dots<0>(part, kStep);
      ready = c + 1 < count && barrier_done(bar);
      add_dots<0>(part, 0);
      finish_dots<0>(part, d, [](int) {});
#pragma unroll
      for (int s = 0; s < kSets; ++s) u[s] = -factors.y * d[s] * factors.x;
    }
  }

  // What the columns of a panel say of the next pivot.
  struct Turn {
    float square, alpha;         // of its column: below the diagonal, and on it
    float top[kSets], d[kSets];  // of every column: the diagonal's row, the dot
    Reflector r;
    float w;
  };
  struct Place {
    int c;
    float* slot;
    Barrier bar;
  };
  // Column c of my panel, in set kFirst, becomes x and goes out; columns before that set are done.
  template <int kFirst>
  __device__ __forceinline__ void meet_own(const Place& at, Turn& turn) {
    const int c = at.c, first = c % 4 * 8, source = first + lane % 8;
    float squares[2] = {}, part[kSets][2] = {}, quarter[4];
    meet<kFirst>(
        [&](int k) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            const float v = k > 0 || row_in_chunk() + i > c ? a[kFirst][k][i] : 0.0f;
            squares[i] = fmaf(v, v, squares[i]);
            x[k][i] = __shfl_sync(~0u, v, source);
          }
        },
        part);
    float square = squares[0] + squares[1];
    square += __shfl_xor_sync(~0u, square, 4);
#pragma unroll
    for (int q = 0; q < 4; ++q) quarter[q] = __shfl_sync(~0u, square, first + q);
    turn.alpha = __shfl_sync(~0u, select(c & 1, a[kFirst][0][1], a[kFirst][0][0]), first + c / 2);
#pragma unroll
    for (int s = kFirst; s < kSets; ++s)
      turn.top[s] = __shfl_sync(~0u, select(c & 1, a[s][0][1], a[s][0][0]), (lane & 24) + c / 2);
    add_dots<kFirst>(part, kStep);
    turn.square = (quarter[0] + quarter[1]) + (quarter[2] + quarter[3]);
    const float sum = fmaf(turn.alpha, turn.alpha, turn.square);
    turn.r = make_reflector(turn.alpha, sum, reciprocal_root(sum));
    turn.w = turn.alpha - turn.r.beta;
    add_dots<kFirst>(part, 0);
    finish_dots<kFirst>(part, turn.d, [&](int level) { write_third(level, at); });
  }

  // A third of the chunks of x goes to its slot.
  __device__ __forceinline__ void write_third(int third, const Place& at) const {
    constexpr int kThird = (kChunks + 11) / 12 * 4;
#pragma unroll
    for (int k = third * kThird; k < (third + 1) * kThird && k < kChunks; ++k) {
      store_if(lane / 8 == at.c % 4 && k < live, at.slot + row_in_chunk(), 4 + k * kColumns, x[k]);
    }
  }
  // What is still to be known of the pivot in x goes out, and the next place is taken.
  template <int kFirst>
  __device__ __forceinline__ void publish(Place& at, const Turn& turn, const Scale& scale) {
    const int c = at.c, group = c % 4;
#pragma unroll
    for (int s = kFirst; s < kSets; ++s) {
      const float over_norm = in_panel(s) > c ? -turn.r.over_norm : 0.0f;
      u[s] = over_norm * fmaf(turn.w, turn.top[s], turn.d[s]) * turn.r.gamma;
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (row_in_chunk() + i == c) x[0][i] = turn.w;
    // By the lane that has written this row of chunk 0.
    if (lane == 8 * group + c / 2) {
      at.slot[4 + c] = turn.w;
      *reinterpret_cast<float2*>(at.slot) = make_float2(turn.r.gamma, turn.r.over_norm);
    }
    if (lane / 8 == group) barrier_arrive(at.bar);
    if (lane == c) {
      tau = turn.r.tau;
      diagonal = turn.r.beta * scale.back;
      gamma = turn.r.gamma;
      lift = scale.to;
    }
    at = {c + 1, at.slot + slot_floats(live), later(at.bar, 1)};
  }
  // The columns of set kSet. Ends early, and says so, at a pivot whose squares underflow.
  template <int kSet>
  __device__ __forceinline__ bool factor_set(Place& at, int count, Turn& turn) {
    const int end = min(4 * kSet + 4, count);
    live = same_in_warp(live);
#pragma unroll 1
    while (at.c < end) {
      meet_own<kSet>(at, turn);
      if (__any_sync(~0u, turn.square < kTinySquare)) return true;
      publish<kSet>(at, turn, {1, 1});
    }
    return false;
  }

  // A pivot in x whose squares underflow, or of zeros, made anew.
  __device__ __forceinline__ Scale remake(Turn& turn) {
    float most = 0, sum = 0, part[kSets][2] = {};
    each_chunk([&](int k) { most = fmaxf(most, fmaxf(fabsf(x[k][0]), fabsf(x[k][1]))); });
    most = __uint_as_float(warp_most(__float_as_uint(most)));
    turn.r = {turn.alpha, 0, 0, 0};
    turn.w = 0;
    if (most == 0) return {1, 1};
    const Scale scale = scale_for(fmaxf(most, fabsf(turn.alpha)));
    each_chunk([&](int k) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        x[k][i] *= scale.to;
        sum = fmaf(x[k][i], x[k][i], sum);
#pragma unroll
        for (int s = 0; s < kSets; ++s) part[s][i] = fmaf(x[k][i], a[s][k][i], part[s][i]);
      }
    });
#pragma unroll
    for (int distance = 1; distance < 8; distance *= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    finish_dots<0>(part, turn.d, [](int) {});
    const float alpha = turn.alpha * scale.to;
    sum = fmaf(alpha, alpha, sum);
    turn.r = make_reflector(alpha, sum, reciprocal_root(sum));
    turn.w = alpha - turn.r.beta;
    return scale;
  }

  // My own panel.
  __device__ __forceinline__ void factor(int panel, int count) {
    Place at{0, slots + slot_place(kChunks, panel), barrier_at(bars + panel * kColumns)};
#pragma unroll 1
    while (at.c < count) {
      Turn turn{};
      bool odd;
      if (at.c < 4)
        odd = factor_set<0>(at, count, turn);
      else if (at.c < 8)
        odd = factor_set<1>(at, count, turn);
      else if (at.c < 12)
        odd = factor_set<2>(at, count, turn);
      else
        odd = factor_set<3>(at, count, turn);
      if (!odd) continue;
      const Scale scale = remake(turn);
#pragma unroll
      for (int third = 0; third < 3; ++third) write_third(third, at);
      publish<0>(at, turn, scale);
    }
    if (count < kColumns) each_chunk([&](int k) { take_to_columns(k); });
  }

  __device__ __forceinline__ void emit_own(int panel, int count) const {
    if (lane < count) taus[panel * kColumns + lane] = tau;
    float up[kSets], first[kSets], second[kSets], middle[kSets];
#pragma unroll
    for (int s = 0; s < kSets; ++s) {
      up[s] = __shfl_sync(~0u, back, in_panel(s));
      first[s] = __shfl_sync(~0u, lift, in_panel(s));  // their product may be too large
      second[s] = __shfl_sync(~0u, gamma, in_panel(s));
      middle[s] = __shfl_sync(~0u, diagonal, in_panel(s)) * up[s];
      if (in_panel(s) >= count) first[s] = up[s], second[s] = 1;
    }
    float products[6][4] = {};
    std::uint32_t high[2][kSets], low[2][kSets];
    each_chunk([&](int k) {
#pragma unroll
      for (int s = 0; s < kSets; ++s) {
        float two[2], v[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          two[i] = v[i] = a[s][k][i] * first[s] * second[s];
          if (k > 0) continue;
          const int below = row_in_chunk() + i - in_panel(s);
          if (below < 0) two[i] = a[s][k][i] * up[s], v[i] = 0;
          if (below == 0 && in_panel(s) < count) two[i] = middle[s], v[i] = 1;
        }
        store(s, (panel + k) * kColumns + row_in_chunk(), two);
        if constexpr (kKeep) split(high[k % 2][s], low[k % 2][s], v[0] * kRaise, v[1] * kRaise);
      }
      if constexpr (kKeep) {
        if (panel + k < kChunks) keep(panel, panel + k, high[k % 2], low[k % 2]);
        if (k % 2 == 1) add_products(products, high, low);
      }
    });
    if constexpr (kKeep) keep_triangle(panel, products);
  }

  // A chunk of my reflectors. A lane has two rows of a column, and gives them away for one of two.
  __device__ __forceinline__ void keep(int panel, int chunk, const std::uint32_t (&high)[kSets],
                                       const std::uint32_t (&low)[kSets]) const {
    char* to = kept + panel * kept_bytes(kChunks) + kTriangleBytes + chunk * kChunkBytes;
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      const auto& half = part < 2 ? high : low;
      const std::uint32_t one = transpose(half[part % 2 * 2]);
      const std::uint32_t other = transpose(half[part % 2 * 2 + 1]);
      // Row lane / 4 as the columns that meet it have theirs.
      const int row = lane / 16 * 2 + lane / 4 % 2 + (lane & 8), in_piece = lane % 4 * 4;
      *reinterpret_cast<std::uint32_t*>(to + piece_place(row, part) + in_piece) =
          first_halves(one, other);
      *reinterpret_cast<std::uint32_t*>(to + piece_place(row + 4, part) + in_piece) =
          second_halves(one, other);
    }
  }
  // Of each reflector with each, over two chunks. To an operand a column is two, one of the first
  // eight rows of a chunk and one of the others; what those have in common is left out later.
  __device__ __forceinline__ static void add_products(float (&products)[6][4],
                                                      const std::uint32_t (&high)[2][kSets],
                                                      const std::uint32_t (&low)[2][kSets]) {
#pragma unroll
    for (int p = 0; p < 6; ++p) {
      const int two = p < 4 ? 0 : 2, s = p < 4 ? p : p - 2;
      const std::uint32_t h[4] = {high[0][two], high[0][two + 1], high[1][two], high[1][two + 1]};
      const std::uint32_t l[4] = {low[0][two], low[0][two + 1], low[1][two], low[1][two + 1]};
      multiply_add(products[p], h, high[0][s], high[1][s]);
      multiply_add(products[p], h, low[0][s], low[1][s]);
      multiply_add(products[p], l, high[0][s], high[1][s]);
    }
  }
  // T of H1 H2 .. = I - V T V', column after column, a lane a row; stored by columns.
  __device__ __forceinline__ void keep_triangle(int panel, const float (&products)[6][4]) const {
    float* to = reinterpret_cast<float*>(kept + panel * kept_bytes(kChunks));
    float both[6][2], row[kColumns];
#pragma unroll
    for (int p = 0; p < 6; ++p)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const float half = select(lane & 4, products[p][2 * i + 1], products[p][2 * i]);
        both[p][i] = half + __shfl_xor_sync(~0u, half, 4);
      }
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      float sum = 0;
#pragma unroll
      for (int k = 0; k < j; ++k)
        sum = fmaf(row[k],
                   __shfl_sync(~0u, both[k < 8 ? j / 4 : j / 4 + 2][k / 4 % 2], k % 4 * 8 + j % 4),
                   sum);
      const float t = __shfl_sync(~0u, tau, j);
      row[j] = lane > j ? 0.0f : lane == j ? t : -t * sum * (kLower * kLower);
      if (lane < kColumns)
        to[kept_order(j) * kColumns + kept_order(lane)] = row[j] * (kLower * kLower);
    }
  }

  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (int panel = 0;; ++panel) {
      const int count = min(kColumns, reflectors - panel * kColumns);
      live = live_chunks(kChunks, panel);
      if (panel == mine) {
        factor(panel, count);
        emit_own(panel, count);
        return;
      }
      follow(panel, count);
      if ((panel + 1) * kColumns >= reflectors) {
        each_chunk([&](int k) { take_to_columns(k); });
        emit_finished(panel, kChunks);
        return;
      }
      take_to_columns(0);
      emit_finished(panel, 1);
      // The other chunks meet the last pivot together with the first of the next panel.
#pragma unroll
      for (int k = 0; k < kChunks; ++k)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
#pragma unroll
          for (int s = 0; s < kSets; ++s) move(a[s][k][i], k + 1 < kChunks ? a[s][k + 1][i] : 0.0f);
          move(x[k][i], k + 1 < kChunks ? x[k + 1][i] : 0.0f);
        }
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
      const Barrier bar = barrier_at(w.bars + j);
      barrier_wait(bar);
#pragma unroll 1
      for (int peer = 0; peer < w.ranks; ++peer) {
        // Only where a later panel is made.
        const int later = (last / deal * w.ranks + peer) * w.warps;
        const bool wants = (later <= last ? later + w.warps : later - deal + w.warps) > panel;
        if (peer == w.rank || !wants) continue;
#pragma unroll 1
        for (int i = w.lane; i < floats / 4; i += 32) {
          float4* place = reinterpret_cast<float4*>(slot) + i;
          send(place, *place, bar, peer);
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
  // What depends on them, and that is nearly every branch, is then the same as well.
  w.rank = same_in_warp(cluster_rank()), w.ranks = same_in_warp(cluster_size());
  const std::int64_t matrix = blockIdx.x / w.ranks;
  w.from = a + matrix * shape.matrix;
  w.to = h + matrix * shape.matrix;
  w.taus = tau + matrix * shape.taus;
  w.kept = kept + matrix * (shape.blocks * kept_bytes(kChunks));
  w.m = shape.m, w.n = shape.n, w.stride = shape.stride, w.reflectors = shape.reflectors;
  w.warps = shape.warps;
  w.lane = lane_of_warp();
  w.bars = reinterpret_cast<std::uint64_t*>(shared_memory);
  w.slots = reinterpret_cast<float*>(w.bars + (shape.reflectors + 1) / 2 * 2);
  // The lanes that write a pivot arrive, or the copy of one that another block makes.
  const auto copied = [&](int i) { return i / kColumns / w.warps % w.ranks != w.rank; };
  for (int i = threadIdx.x; i < shape.reflectors; i += blockDim.x)
    barrier_init(barrier_at(w.bars + i), copied(i) ? 1 : kArrivals);
  // One lane initialises for its warp, as the machine code has it.
  __syncwarp();
  for (int i = threadIdx.x; i < shape.reflectors; i += blockDim.x)
    if (copied(i))
      barrier_expect(barrier_at(w.bars + i), 4 * slot_floats(live_chunks(kChunks, i / kColumns)));
  fence_barrier_init();
  const int warp = same_in_warp(threadIdx.x / 32);
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

// Four lanes a column here, as the operands of the products want it: set s of a lane is column
// 8 s + lane / 4, and its registers of a chunk are rows 4 (lane % 4) ...
template <int kChunks, bool kAligned>
struct BlockWarp {
  float a[2][kChunks][4], back[2];
  const float* from;
  float* to;
  const char* kept;
  const char* stored;  // V in shared memory
  std::uint64_t* bars;
  int m, n, stride, lane, mine, blocks;

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
  // Near 2^5, for halves.
  __device__ __forceinline__ void raise() {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      float most = 0;
#pragma unroll
      for (int k = 0; k < kChunks; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i) most = fmaxf(most, fabsf(a[s][k][i]));
      most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
      const Scale scale = scale_for(fmaxf(most, __shfl_xor_sync(~0u, most, 2)));
      back[s] = scale.back * kLower;
#pragma unroll
      for (int k = 0; k < kChunks; ++k)
#pragma unroll
        for (int i = 0; i < 4; ++i) a[s][k][i] = a[s][k][i] * scale.to * kRaise;
    }
  }
  __device__ __forceinline__ void emit() const {
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      float* p = to + column(s) * stride + row_in_chunk();
      const int rows = column(s) < n ? m - row_in_chunk() : 0;
#pragma unroll
      for (int k = 0; k < kChunks; ++k) {
        float four[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) four[i] = a[s][k][i] * back[s];
        if constexpr (kAligned) {
          if (k * kColumns < rows)
            *reinterpret_cast<float4*>(p + k * kColumns) =
                make_float4(four[0], four[1], four[2], four[3]);
        } else {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            if (k * kColumns + i < rows) p[k * kColumns + i] = four[i];
        }
      }
    }
  }
  // As a left operand, 16 columns by the 16 rows of a chunk.
  __device__ __forceinline__ static Halves split_chunk(const float (&one)[4],
                                                       const float (&other)[4]) {
    Halves h;
    split(h.high[0], h.low[0], one[0], one[1]);
    split(h.high[1], h.low[1], other[0], other[1]);
    split(h.high[2], h.low[2], one[2], one[3]);
    split(h.high[3], h.low[3], other[2], other[3]);
    return h;
  }

  // kFirst: the first chunk that the block and its neighbours work on.
  template <int kFirst>
  __device__ __forceinline__ void meet(int block) {
    const char* v = stored + kept_place(kChunks, block);
    const auto* t = reinterpret_cast<const float2*>(kept + block * kept_bytes(kChunks));
    float2 triangle[2][2];
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int k = 0; k < 2; ++k) triangle[n][k] = t[(n * 8 + lane / 4) * 8 + k * 4 + lane % 4];
    barrier_wait(barrier_at(bars + block));
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
    apply_columns(const float* a, float* h, const char* kept, Shape shape) {
  extern __shared__ float4 shared_memory[];
  BlockWarp<kChunks, kAligned> w;
  const int groups = (shape.n + kBlockWarps * kColumns - 1) / (kBlockWarps * kColumns);
  const std::int64_t matrix = blockIdx.x / groups;
  w.from = a + matrix * shape.matrix;
  w.to = h + matrix * shape.matrix;
  w.kept = kept + matrix * (shape.blocks * kept_bytes(kChunks));
  w.m = shape.m, w.n = shape.n, w.stride = shape.stride;
  w.blocks = shape.blocks;
  w.lane = lane_of_warp();
  w.mine = blockIdx.x % groups * kBlockWarps + same_in_warp(threadIdx.x / 32);
  w.bars = reinterpret_cast<std::uint64_t*>(shared_memory);
  char* stored = reinterpret_cast<char*>(w.bars + (shape.blocks + 15) / 16 * 16);
  w.stored = stored;
  if (threadIdx.x == 0) {
    for (int b = 0; b < shape.blocks; ++b) barrier_init(barrier_at(w.bars + b), 1);
    fence_barrier_init();
    for (int b = 0; b < shape.blocks; ++b) {
      const int bytes = (kChunks - b) * kChunkBytes;
      const Barrier bar = barrier_at(w.bars + b);
      barrier_expect(bar, bytes);
      copy_bulk(stored + kept_place(kChunks, b) + b % kCut * kChunkBytes,
                w.kept + b * kept_bytes(kChunks) + kTriangleBytes + b * kChunkBytes, bytes, bar);
    }
  }
  w.load();
  for (int b = 0; b < shape.blocks; ++b)
    for (int i = threadIdx.x; i < b % kCut * (kChunkBytes / 16); i += blockDim.x)
      reinterpret_cast<float4*>(stored + kept_place(kChunks, b))[i] = make_float4(0, 0, 0, 0);
  w.raise();
  __syncthreads();
  w.template meet_from<0>(0);
  w.emit();
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
constexpr int kMostWarps = kChunks <= 11 ? 11 : 8;

template <int kChunks, bool kKeep>
auto* choose_kernel(int m) {
  return m % 2 == 0 ? factor_columns<kChunks, 32 * kMostWarps<kChunks>, true, kKeep>
                    : factor_columns<kChunks, 32 * kMostWarps<kChunks>, false, kKeep>;
}

// Factors the first `columns` columns, and takes them to the others. Returns the reflectors made.
template <int kChunks, bool kRest>
int plan_part(Job& job, const Part& part, int columns) {
  const int panels = (columns + kColumns - 1) / kColumns;
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
      kRest ? std::int64_t{job.batch} * shape.blocks * kept_bytes(kChunks) : 16);
  job.plan.launch(
      choose_kernel<kChunks, kRest>(job.m),
      {.grid = job.batch * ranks,
       .block = 32 * warps,
       .cluster = {ranks, 1},
       .shared_bytes = (shape.reflectors + 1) / 2 * 16 + 4 * slot_place(kChunks, shape.blocks)},
      part.a, part.h, part.tau, kept, shape);
  if constexpr (kRest) {
    shape.n = part.n - columns;
    const int groups = (shape.n + kBlockWarps * kColumns - 1) / (kBlockWarps * kColumns);
    const std::int64_t on = std::int64_t{columns} * job.m;
    job.plan.launch(
        job.m % 4 == 0 ? apply_columns<kChunks, true> : apply_columns<kChunks, false>,
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
      done = plan_part<11, false>(job, part, part.n);
    } else {
      // No more than leaves a square for the next part.
      const int most = std::max(part.m, part.n);
      const int columns =
          most <= 2 * kChip ? (most - kChip + kColumns - 1) / kColumns * kColumns : kChip;
      done = columns < part.n ? plan_part<22, true>(job, part, columns)
                              : plan_part<22, false>(job, part, part.n);
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
