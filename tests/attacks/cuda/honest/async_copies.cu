// Tiles of A come by cp.async, one in flight while the other is used.
#include "product.h"

namespace {

__device__ void fetch(float* to, const float* from, bool there) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from),
               "r"(there ? 4 : 0)
               : "memory");
}

__global__ void multiply_in_flight(const float* a, const float* b, float* c, Shape s) {
  __shared__ float tiles[2][kTile][kTile];
  const auto start = [&](int from) {
    const int i = from + threadIdx.x;
    const bool there = my_row() < s.m && i < s.k;
    fetch(&tiles[from / kTile % 2][threadIdx.y][threadIdx.x], there ? a + my_row() * s.k + i : a,
          there);
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  start(0);
  float sum = 0;
  for (int from = 0; from < s.k; from += kTile) {
    start(from + kTile);  // beyond the end it fetches zeros
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();  // everybody's part of this tile is there
    for (int l = 0; l < kTile && from + l < s.k; ++l)
      if (my_column() < s.n)
        sum += tiles[from / kTile % 2][threadIdx.y][l] * b[(from + l) * s.n + my_column()];
    __syncthreads();  // the tile may be overwritten
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  store(c, s, sum);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  plan.launch(multiply_in_flight, work.tiles, work.a, work.b, work.c, work.s);
}
