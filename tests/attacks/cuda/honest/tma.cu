// Tiles of A arrive by the tensor memory accelerator, which also fills what lies outside.
#include "product.h"

namespace {

__device__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

__device__ void load_tile(const CUtensorMap& map, const float* to, std::uint64_t* barrier, int from,
                          int row) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "n"(kTile * kTile * 4)
      : "memory");
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(&map), "r"(from), "r"(row), "r"(shared_address(barrier))
      : "memory");
}

__device__ void wait_for(const std::uint64_t* barrier, unsigned phase) {
  for (unsigned done = 0; done == 0;)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(phase)
        : "memory");
}

__global__ void multiply_tiles(const __grid_constant__ CUtensorMap map, const float* b, float* c,
                               Shape s) {
  __shared__ alignas(128) float of_a[kTile][kTile];
  __shared__ std::uint64_t barrier;
  const bool leads = threadIdx.x == 0 && threadIdx.y == 0;
  if (leads)
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" ::"r"(
            shared_address(&barrier))
        : "memory");
  __syncthreads();  // the barrier is there
  float sum = 0;
  unsigned phase = 0;
  for (int from = 0; from < s.k; from += kTile) {
    if (leads) load_tile(map, &of_a[0][0], &barrier, from, blockIdx.y * kTile);
    wait_for(&barrier, phase);
    phase ^= 1;
    for (int l = 0; l < kTile && from + l < s.k; ++l)
      if (my_column() < s.n) sum += of_a[threadIdx.y][l] * b[(from + l) * s.n + my_column()];
    __syncthreads();  // all have read the tile
  }
  store(c, s, sum);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const Work work = work_of(args);
  // The accelerator wants rows of whole 16 bytes.
  if (work.s.k % 4 != 0) {
    plan.launch(multiply, work.tiles, work.a, work.b, work.c, work.s);
    return;
  }
  const auto k = static_cast<std::uint64_t>(work.s.k);
  const auto map = plan.tensor_map(
      kbeam::TensorTile<const float>{.base = work.a,
                                     .dims = {k, static_cast<std::uint64_t>(work.s.m)},
                                     .strides = {k},
                                     .box = {kTile, kTile}});
  plan.launch(multiply_tiles, work.tiles, map, work.b, work.c, work.s);
}
