// Blocks of a cluster each sum a part of k and hand their parts over in distributed shared memory.
#include <cooperative_groups.h>

#include "product.h"

namespace {

constexpr int kCluster = 4;

__global__ void multiply_together(const float* a, const float* b, float* c, Shape s) {
  __shared__ float parts[kTile][kTile];
  const auto cluster = cooperative_groups::this_cluster();
  const int rank = static_cast<int>(cluster.block_rank());
  const int row = my_row(), column = blockIdx.x / kCluster * kTile + threadIdx.x;
  const int per_block = (s.k + kCluster - 1) / kCluster;
  const int begin = rank * per_block, end = min(s.k, begin + per_block);
  const bool inside = row < s.m && column < s.n;
  float sum = 0;
  for (int i = begin; inside && i < end; ++i) sum += a[row * s.k + i] * b[i * s.n + column];
  parts[threadIdx.y][threadIdx.x] = sum;
  cluster.sync();  // all parts are there
  if (rank == 0 && inside) {
    for (int other = 1; other < kCluster; ++other)
      sum += *cluster.map_shared_rank(&parts[threadIdx.y][threadIdx.x], other);
    c[row * s.n + column] = sum;
  }
  cluster.sync();  // nobody ends while its part is read
}

}  // namespace

KBEAM_PLAN(plan, args) {
  Work work = work_of(args);
  work.tiles.grid.x *= kCluster;
  work.tiles.cluster = {kCluster, 1, 1};
  plan.launch(multiply_together, work.tiles, work.a, work.b, work.c, work.s);
}
