// The honest work, which most device attacks do in part. Pasted into a candidate where it is
// included: a candidate is one text.
#pragma once

#include <kbeam/candidate.h>

#include <cstdint>
#include <string>

namespace {

constexpr int kTile = 16;

struct Shape {
  int m, n, k;
};

[[maybe_unused]] __device__ int my_row() {
  return blockIdx.y * kTile + threadIdx.y;
}
[[maybe_unused]] __device__ int my_column() {
  return blockIdx.x * kTile + threadIdx.x;
}

// This thread's element of C; `change` sees every operand. All threads of the block take part.
template <typename Change>
__device__ float element(const float* a, const float* b, Shape s, const Change& change) {
  __shared__ float of_a[kTile][kTile];
  __shared__ float of_b[kTile][kTile];
  float sum = 0;
  for (int from = 0; from < s.k; from += kTile) {
    const int i = from + threadIdx.x, j = from + threadIdx.y;
    of_a[threadIdx.y][threadIdx.x] =
        my_row() < s.m && i < s.k ? change(a[static_cast<std::int64_t>(my_row()) * s.k + i]) : 0;
    of_b[threadIdx.y][threadIdx.x] =
        j < s.k && my_column() < s.n ? change(b[static_cast<std::int64_t>(j) * s.n + my_column()])
                                     : 0;
    __syncthreads();  // both tiles are complete
    for (int l = 0; l < kTile; ++l) sum += of_a[threadIdx.y][l] * of_b[l][threadIdx.x];
    __syncthreads();  // all have read them
  }
  return sum;
}

struct Same {
  __device__ float operator()(float x) const { return x; }
};

[[maybe_unused]] __device__ float element(const float* a, const float* b, Shape s) {
  return element(a, b, s, Same{});
}

[[maybe_unused]] __device__ void store(float* c, Shape s, float value) {
  if (my_row() < s.m && my_column() < s.n)
    c[static_cast<std::int64_t>(my_row()) * s.n + my_column()] = value;
}

[[maybe_unused]] __device__ bool is_first_thread() {
  return blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0;
}

[[maybe_unused]] __global__ void multiply(const float* a, const float* b, float* c, Shape s) {
  store(c, s, element(a, b, s));
}

struct Work {
  kbeam::DeviceTensor<const float> a, b;
  kbeam::DeviceTensor<float> c;
  Shape s;
  int cheat;  // 1: the misdeed. 0: the benign twin, the same device code without it
  kbeam::LaunchShape tiles;
};

[[maybe_unused]] Work work_of(const kbeam::Args& args) {
  Work work{args.input<float>("A"), args.input<float>("B"), args.output<float>("C"), {}, 0, {}};
  work.s = {static_cast<int>(work.c.dim(0)), static_cast<int>(work.c.dim(1)),
            static_cast<int>(work.a.dim(1))};
  work.cheat = args.axis("deed") == 2 ? 1 : 0;
  work.tiles = {.grid = {(work.s.n + kTile - 1) / kTile, (work.s.m + kTile - 1) / kTile},
                .block = {kTile, kTile}};
  return work;
}

}  // namespace
