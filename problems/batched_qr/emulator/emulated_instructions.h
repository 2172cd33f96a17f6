// The instructions that the sketches wrap, on the emulated device: what stands between
// `--- instructions ---` and `--- end of instructions ---` of a sketch is replaced by this
// (emulated_source.cmake). One name does the same in every sketch.
#pragma once

#include <algorithm>
#include <array>

#include "emulated_device.h"

using std::max;
using std::min;

namespace {

// --- barriers and clusters ---

inline std::uint32_t shared_address(const void* p) {
  return kbeam::emulated_shared_offset(p);
}
inline void barrier_init(std::uint64_t* barrier, int arrivals) {
  kbeam::emulated_barrier_init(barrier, arrivals);
}
inline void barrier_expect(std::uint64_t* barrier, int bytes) {
  kbeam::emulated_barrier_arrive(barrier, bytes);
}
inline void barrier_arrive(std::uint64_t* barrier) {
  kbeam::emulated_barrier_arrive(barrier, 0);
}
inline void barrier_wait(std::uint64_t* barrier, std::uint32_t parity = 0) {
  kbeam::emulated_barrier_wait(barrier, parity);
}
template <bool kFromCluster>
void barrier_wait(std::uint64_t* barrier, int parity) {
  kbeam::emulated_barrier_wait(barrier, static_cast<std::uint32_t>(parity));
}
inline bool barrier_done(std::uint64_t* barrier) {
  if (!kbeam::emulated_barrier_done(barrier, 0)) kbeam::emulated_poll();
  return kbeam::emulated_barrier_done(barrier, 0);
}
inline void fence_barrier_init() {}
inline void half_barrier(int half) {
  kbeam::emulated_named_barrier(half + 1, 128);
}
inline void cluster_sync() {
  kbeam::emulated_cluster_barrier();
}
inline int cluster_rank() {
  return kbeam::emulated_cluster_rank();
}
inline int cluster_size() {
  return kbeam::emulated_cluster_size();
}
template <typename T>
void send(T* place, T x, std::uint64_t* barrier, int rank) {
  kbeam::emulated_store_async(
      kbeam::emulated_place_in(place, rank), &x, sizeof x,
      reinterpret_cast<std::uint64_t*>(kbeam::emulated_place_in(barrier, rank)));
}
inline void tell_peer(std::uint64_t* barrier, int rank) {
  kbeam::emulated_barrier_arrive(
      reinterpret_cast<std::uint64_t*>(kbeam::emulated_place_in(barrier, rank)), 0);
}
inline void let_next_start() {}
inline void wait_for_previous() {}

// --- copies ---

inline void copy_16(void* to, const void* from) {
  kbeam::emulated_copy_later(to, from, 16);
}
inline void commit_copies() {
  kbeam::emulated_commit_copies();
}
template <int kLeft>
void wait_copies() {
  kbeam::emulated_wait_copies(kLeft);
}
inline void copy_async(char* to, const char* from) {
  copy_16(to, from);
}
inline void copy_async_kept(char* to, const char* from) {
  copy_16(to, from);
}
inline void copy_commit() {
  commit_copies();
}
template <int kLeft>
void copy_wait() {
  wait_copies<kLeft>();
}
inline void copy_bulk(void* to, const void* from, int bytes, std::uint64_t* barrier) {
  kbeam::emulated_copy_async(to, from, bytes, barrier);
}
inline void store_bulk(void* to, const void* from, int bytes) {
  kbeam::emulated_store_later(to, from, bytes);
}
inline void wait_bulk() {
  kbeam::emulated_wait_stores();
}
inline void prefetch(const void*, int) {}
inline void prefetch_kept(const void*, int) {}
inline void show_to_tensor_cores() {}

// --- numbers ---

inline float reciprocal(float x) {
  return 1 / x;
}
inline float reciprocal_root(float x) {
  return 1 / std::sqrt(x);
}
inline double reciprocal_root(double x) {
  return 1 / std::sqrt(x);
}
// With as few bits as the real one has.
inline double rough_reciprocal(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(1 / x) & ~std::uint64_t{0xffffffff});
}
inline std::uint32_t to_halves(float first, float second) {
  return kbeam::emulated_to_half(first) |
         static_cast<std::uint32_t>(kbeam::emulated_to_half(second)) << 16;
}
inline float2 from_halves(std::uint32_t pair) {
  return {kbeam::emulated_from_half(static_cast<std::uint16_t>(pair)),
          kbeam::emulated_from_half(static_cast<std::uint16_t>(pair >> 16))};
}
inline int uniform(int x) {
  return x;
}
inline int keep(int x) {
  return x;
}
inline std::uint32_t warp_most(std::uint32_t x) {
  kbeam::emulated_show(&x, sizeof x);
  std::uint32_t most = 0;
  for (int lane = 0; lane < 32; ++lane)
    most = std::max(most, *static_cast<const std::uint32_t*>(kbeam::emulated_shown_by(lane)));
  return most;
}
inline void move(float& to, float from) {
  to = from;
}
inline float select(bool first, float one, float other) {
  return first ? one : other;
}
inline void load_if(bool really, float (&to)[4], const float* from, int offset) {
  if (really) std::copy_n(from + offset, 4, to);
}
inline void store_if(bool really, float* to, int offset, const float (&from)[4]) {
  if (really) std::copy_n(from, 4, to + offset);
}

// --- products of a warp ---

template <typename T>
T shown_by(int lane) {
  T value;
  std::memcpy(&value, kbeam::emulated_shown_by(lane), sizeof value);
  return value;
}
inline float half_of(std::uint32_t pair, int which) {
  return kbeam::emulated_from_half(static_cast<std::uint16_t>(pair >> which * 16));
}

// 16 x 8 x 16 in halves.
inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                         std::uint32_t b1) {
  using Words = std::array<std::uint32_t, 6>;
  const Words own{a[0], a[1], a[2], a[3], b0, b1};
  kbeam::emulated_show(&own, sizeof own);
  const int g = kbeam::emulated_lane() / 4, t = kbeam::emulated_lane() % 4;
  float left[2][16], right[2][16];
  for (int quarter = 0; quarter < 4; ++quarter) {
    const Words of_row = shown_by<Words>(4 * g + quarter);
    for (int i = 0; i < 8; ++i)
      left[i % 4 / 2][i / 4 * 8 + 2 * quarter + i % 2] =
          half_of(of_row[static_cast<unsigned>(i / 4 * 2 + i % 4 / 2)], i % 2);
    for (int e = 0; e < 2; ++e) {
      const Words of_column = shown_by<Words>(4 * (2 * t + e) + quarter);
      for (int i = 0; i < 4; ++i)
        right[e][i / 2 * 8 + 2 * quarter + i % 2] =
            half_of(of_column[static_cast<unsigned>(4 + i / 2)], i % 2);
    }
  }
  for (int i = 0; i < 4; ++i) {
    float sum = 0;
    for (int k = 0; k < 16; ++k) sum += left[i / 2][k] * right[i % 2][k];
    c[i] += sum;
  }
}
// 16 x 8 x 8, of numbers cut to 10 bits.
inline void multiply_add_tf32(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                              std::uint32_t b1) {
  using Words = std::array<std::uint32_t, 6>;
  const Words own{a[0], a[1], a[2], a[3], b0, b1};
  kbeam::emulated_show(&own, sizeof own);
  const int g = kbeam::emulated_lane() / 4, t = kbeam::emulated_lane() % 4;
  const auto cut = [](std::uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000u); };
  for (int i = 0; i < 4; ++i) {
    float sum = 0;
    for (int k = 0; k < 8; ++k) {
      const Words of_row = shown_by<Words>(4 * g + k % 4);
      const Words of_column = shown_by<Words>(4 * (2 * t + i % 2) + k % 4);
      sum += cut(of_row[static_cast<unsigned>(k / 4 * 2 + i / 2)]) *
             cut(of_column[static_cast<unsigned>(4 + k / 4)]);
    }
    c[i] += sum;
  }
}
// 16 x 8 x 16 in FP64. Element 2 q + h of a: row lane / 4 + 8 h, column lane % 4 + 4 q; element q
// of b: row lane % 4 + 4 q, column lane / 4.
inline void multiply_add(double (&c)[4], const double (&a)[8], const double (&b)[4]) {
  using Words = std::array<double, 12>;
  Words own;
  std::copy_n(a, 8, own.begin());
  std::copy_n(b, 4, own.begin() + 8);
  kbeam::emulated_show(&own, sizeof own);
  const int g = kbeam::emulated_lane() / 4, t = kbeam::emulated_lane() % 4;
  for (int quarter = 0; quarter < 4; ++quarter) {
    const Words of_row = shown_by<Words>(4 * g + quarter);
    for (int e = 0; e < 2; ++e) {
      const Words of_column = shown_by<Words>(4 * (2 * t + e) + quarter);
      for (unsigned h = 0; h < 2; ++h)
        for (unsigned q = 0; q < 4; ++q)
          c[2 * h + static_cast<unsigned>(e)] += of_row[2 * q + h] * of_column[8 + q];
    }
  }
}

template <bool kTransposed, typename Place>
void load_four_matrices(std::uint32_t (&to)[4], const Place* row) {
  const void* own = row;
  kbeam::emulated_require_aligned(own, 16);
  kbeam::emulated_show(&own, sizeof own);
  const int g = kbeam::emulated_lane() / 4, t = kbeam::emulated_lane() % 4;
  const auto at = [](int matrix, int i, int j) {
    std::uint16_t half;
    std::memcpy(&half, shown_by<const char*>(8 * matrix + i) + 2 * j, 2);
    return static_cast<std::uint32_t>(half);
  };
  for (int m = 0; m < 4; ++m)
    to[m] = kTransposed ? at(m, 2 * t, g) | at(m, 2 * t + 1, g) << 16
                        : at(m, g, 2 * t) | at(m, g, 2 * t + 1) << 16;
}
template <typename Place>
void load_matrices(std::uint32_t (&to)[4], const Place* row) {
  load_four_matrices<false>(to, row);
}
template <typename Place>
void load_transposed(std::uint32_t (&to)[4], const Place* row) {
  load_four_matrices<true>(to, row);
}
inline std::uint32_t transpose(std::uint32_t pair) {
  kbeam::emulated_show(&pair, sizeof pair);
  const int g = kbeam::emulated_lane() / 4, t = kbeam::emulated_lane() % 4;
  const auto at = [](int i, int j) {
    return shown_by<std::uint32_t>(4 * i + j / 2) >> j % 2 * 16 & 0xffff;
  };
  return at(2 * t, g) | at(2 * t + 1, g) << 16;
}

// --- products of a warpgroup ---

template <int kTurned>
void multiply_wide(float (&c)[16][4], const std::uint32_t (&a)[4], std::uint64_t b, int add) {
  kbeam::WideProduct product{c, {}, true, kTurned != 0, add != 0, 0, b};
  std::copy_n(a, 4, product.fragments);
  kbeam::emulated_multiply_wide(product);
}
inline void multiply_wide(float (&c)[16][4], std::uint64_t a, std::uint64_t b, int add) {
  kbeam::emulated_multiply_wide({c, {}, false, false, add != 0, a, b});
}
inline std::uint64_t operand(std::uint32_t address, int along, int across) {
  kbeam::emulated_require_aligned(kbeam::emulated_shared_memory() + address, 16);
  return static_cast<std::uint64_t>((address & 0x3ffff) >> 4) |
         static_cast<std::uint64_t>(along >> 4) << 16 |
         static_cast<std::uint64_t>(across >> 4) << 32;
}
inline void begin_wide() {}
inline void end_wide() {}
template <int kLeft>
void wait_wide() {
  kbeam::emulated_wait_wide();
}

}  // namespace
