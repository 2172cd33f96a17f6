// C = A B: a block makes a tile of 16 x 16, a thread an element.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

constexpr int kTile = 16;

struct Shape {
  int m, n, k;
};

__global__ void multiply(const float* a, const float* b, float* c, Shape s) {
  __shared__ float of_a[kTile][kTile];
  __shared__ float of_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int from = 0; from < s.k; from += kTile) {
    const int i = from + threadIdx.x, j = from + threadIdx.y;
    of_a[threadIdx.y][threadIdx.x] = row < s.m && i < s.k ? a[row * s.k + i] : 0;
    of_b[threadIdx.y][threadIdx.x] = j < s.k && column < s.n ? b[j * s.n + column] : 0;
    __syncthreads();  // both tiles are complete
    for (int l = 0; l < kTile; ++l) sum += of_a[threadIdx.y][l] * of_b[l][threadIdx.x];
    __syncthreads();  // all have read them
  }
  if (row < s.m && column < s.n) c[row * s.n + column] = sum;
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Shape s{static_cast<int>(c.dim(0)), static_cast<int>(c.dim(1)), static_cast<int>(a.dim(1))};
  plan.launch(
      multiply,
      {.grid = {(s.n + kTile - 1) / kTile, (s.m + kTile - 1) / kTile}, .block = {kTile, kTile}}, a,
      b, c, s);
}
