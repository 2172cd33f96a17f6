// One mistake a plan, chosen by the axis "mistake".
#include <kbeam/candidate.h>

#include "wrong_plans.h"

namespace {

__global__ void touch(float* y, int value) {
  y[0] = static_cast<float>(value);
}
__global__ void __launch_bounds__(128) bounded(float* y) {
  y[threadIdx.x] = 0;
}
__global__ void static_shared(float* y) {
  __shared__ float held[8192];
  held[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = held[threadIdx.x ^ 1];
}
__global__ void __cluster_dims__(2, 1, 1) paired(float* y) {
  y[blockIdx.x] = 0;
}
__global__ void tiled(const __grid_constant__ CUtensorMap map, float* y) {
  if (threadIdx.x == 0) asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
  y[0] = 0;
}

using kbeam::PlanMistake;

// A tensor map on y with one wrong field.
void map_wrongly(kbeam::Plan& plan, kbeam::DeviceTensor<float> y, PlanMistake mistake) {
  kbeam::TensorTile<float> tile{.base = y, .dims = {64, 4}, .strides = {64}, .box = {16, 4}};
  if (mistake == PlanMistake::box_too_large) tile.box = {16, 257};
  if (mistake == PlanMistake::box_not_whole) tile.box = {3, 4};
  if (mistake == PlanMistake::swizzle_too_narrow) tile.swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
  if (mistake == PlanMistake::odd_stride) tile.strides = {63};
  if (mistake == PlanMistake::tensor_map_beyond_a_buffer) tile.dims = {64, 5};
  plan.launch(tiled, {.grid = 1, .block = 32}, plan.tensor_map(tile), y);
}

void multiply_wrongly(kbeam::Plan& plan, kbeam::DeviceTensor<const float> x,
                      kbeam::DeviceTensor<float> y, PlanMistake mistake) {
  kbeam::Gemm gemm{.m = 8,
                   .n = 8,
                   .k = 8,
                   .a = x.place,
                   .b = x.place,
                   .c = y.place,
                   .lda = 8,
                   .ldb = 8,
                   .ldc = 8};
  if (mistake == PlanMistake::multiplies_into_an_input) gemm.c = x.place;
  if (mistake == PlanMistake::multiplies_mixed_types) gemm.type_c = KBEAM_GEMM_F64;
  if (mistake == PlanMistake::multiplies_beyond_a_buffer) gemm.ldc = 40;
  plan.gemm(gemm);
}

constexpr std::int64_t kWraps = std::int64_t{1} << 62;  // times 4 bytes is 0 in 64 bits
constexpr std::int64_t kWraps32 = std::int64_t{1} << 32;

// Counts and sizes whose products or conversions would look small and honest if they wrapped.
void count_wrongly(kbeam::Plan& plan, kbeam::DeviceTensor<const float> x,
                   kbeam::DeviceTensor<float> y, PlanMistake mistake) {
  switch (mistake) {
    case PlanMistake::scratch_beyond_64_bits:
      plan.launch(touch, {}, plan.scratch<float>(kWraps), 1);
      return;
    case PlanMistake::scratch_wraps_to_few_bytes:
      plan.launch(touch, {}, plan.scratch<float>(kWraps + 1), 1);
      return;
    case PlanMistake::zeroed_scratch_beyond_64_bits:
      plan.launch(touch, {}, plan.zeroed_scratch<float>(kWraps), 1);
      return;
    case PlanMistake::scratch_of_negative_count:
      plan.launch(touch, {}, plan.scratch<float>(-3), 1);
      return;
    case PlanMistake::scratch_of_very_negative_count:
      plan.launch(touch, {}, plan.zeroed_scratch<float>(1 - kWraps), 1);
      return;
    case PlanMistake::fill_wraps_to_few_bytes:
      plan.fill(y, kWraps + 1, 0);
      return;
    case PlanMistake::copy_wraps_to_few_bytes:
      plan.copy(y, x, kWraps + 1);
      return;
    case PlanMistake::fill_of_negative_count:
      plan.fill(y, -2, 0);
      return;
    case PlanMistake::pointer_wraps_into_its_buffer:
      plan.launch(touch, {}, y + kWraps, 1);
      return;
    case PlanMistake::pointer_comes_back_from_beyond:
      plan.launch(touch, {}, y + kWraps + (1 - kWraps / 2), 1);
      return;
    case PlanMistake::stride_wraps_to_few_bytes: {
      kbeam::TensorTile<float> tile{.base = y, .dims = {64, 4}, .box = {16, 4}};
      tile.strides = {static_cast<std::uint64_t>(kWraps) + 64};
      plan.launch(tiled, {.grid = 1, .block = 32}, plan.tensor_map(tile), y);
      return;
    }
    case PlanMistake::negative_grid:
      plan.launch(touch, {.grid = {4, -1}, .block = 32}, y, 1);
      return;
    case PlanMistake::negative_block:
      plan.launch(touch, {.grid = 1, .block = -32}, y, 1);
      return;
    case PlanMistake::negative_cluster:
      plan.launch(touch, {.grid = 4, .block = 32, .cluster = -2}, y, 1);
      return;
    case PlanMistake::grid_wraps_to_few_blocks:
      plan.launch(touch, {.grid = kWraps32 + 1, .block = 32}, y, 1);
      return;
    case PlanMistake::block_wraps_to_few_threads:
      plan.launch(touch, {.grid = 1, .block = {kWraps32 + 32, 1}}, y, 1);
      return;
    case PlanMistake::cluster_wraps_to_few_blocks:
      plan.launch(touch, {.grid = 4, .block = 32, .cluster = {2, kWraps32 + 1}}, y, 1);
      return;
    case PlanMistake::grid_of_all_64_bits:
      plan.launch(touch, {.grid = ~std::uint64_t{0}, .block = 32}, y, 1);
      return;
    case PlanMistake::negative_shared_memory:
      plan.launch(touch, {.grid = 1, .block = 32, .shared_bytes = -16}, y, 1);
      return;
    case PlanMistake::shared_memory_wraps_to_none:
      plan.launch(touch, {.grid = 1, .block = 32, .shared_bytes = kWraps32}, y, 1);
      return;
    default:
      return;
  }
}

void launch_wrongly(kbeam::Plan& plan, kbeam::DeviceTensor<float> y, PlanMistake mistake) {
  switch (mistake) {
    case PlanMistake::no_blocks:
      plan.launch(touch, {.grid = 0, .block = 32}, y, 1);
      return;
    case PlanMistake::too_many_rows_of_blocks:
      plan.launch(touch, {.grid = {1, 65536}, .block = 32}, y, 1);
      return;
    case PlanMistake::too_many_threads:
      plan.launch(touch, {.grid = 1, .block = {64, 32}}, y, 1);
      return;
    case PlanMistake::above_launch_bounds:
      plan.launch(bounded, {.grid = 1, .block = 256}, y);
      return;
    case PlanMistake::too_much_shared_memory:
      plan.launch(static_shared, {.grid = 1, .block = 256, .shared_bytes = 200 * 1024}, y);
      return;
    case PlanMistake::cluster_does_not_divide:
      plan.launch(touch, {.grid = 9, .block = 32, .cluster = 4}, y, 1);
      return;
    case PlanMistake::cluster_too_large:
      plan.launch(touch, {.grid = 32, .block = 32, .cluster = 32}, y, 1);
      return;
    case PlanMistake::another_cluster_than_compiled:
      plan.launch(paired, {.grid = 8, .block = 32, .cluster = 4}, y);
      return;
    case PlanMistake::too_many_cooperative_blocks:
      plan.launch(touch, {.grid = 132 * 2 + 1, .block = 1024, .cooperative = true}, y, 1);
      return;
    case PlanMistake::no_such_carveout:
      plan.launch(touch, {.grid = 1, .block = 32, .shared_carveout_percent = 120}, y, 1);
      return;
    default:
      return;
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto y = args.output<float>("y");
  const std::int64_t count = x.dim(0) * x.dim(1);
  const auto mistake = static_cast<PlanMistake>(args.axis("mistake"));
  const auto touch_y = [&](const kbeam::LaunchShape& shape = {}) {
    return plan.launch(touch, shape, y, 1);
  };
  const kbeam::Node start = touch_y();
  const auto x_as_output = kbeam::DevicePointer<float>{x.place};
  switch (mistake) {
    case PlanMistake::fills_an_input:
      plan.fill(x_as_output, count, 0);
      return;
    case PlanMistake::writes_an_input:
      plan.copy(x_as_output, y, count);
      return;
    case PlanMistake::copies_into_a_table:
      plan.copy(kbeam::DevicePointer<int>{plan.table(std::vector<int>{1, 2}).place},
                y.as<const int>(), 2);
      return;
    case PlanMistake::copies_onto_itself:
      plan.copy(y + 4, y, 8);
      return;
    case PlanMistake::reaches_beyond_a_buffer:
      plan.fill(y + 1, count, 0);
      return;
    case PlanMistake::argument_beyond_a_buffer:
      plan.launch(touch, {}, y + count + 1, 1);
      return;
    case PlanMistake::overlaps_two_nodes: {
      const kbeam::Node other = touch_y();
      touch_y({.overlap_previous = true, .after = {start, other}});
      return;
    }
    case PlanMistake::overlaps_a_copy:
      plan.fill(y, 1, 0);
      touch_y({.overlap_previous = true});
      return;
    case PlanMistake::waits_for_a_later_node:
      touch_y({.after = {kbeam::Node{5}}});
      return;
    case PlanMistake::waits_across_bodies:
      plan.when(plan.condition(), [&] { touch_y({.after = {start}}); });
      return;
    case PlanMistake::unused_condition:
      plan.condition();
      return;
    case PlanMistake::condition_asked_twice: {
      const auto condition = plan.condition();
      plan.when(condition, [&] { touch_y(); });
      plan.when(condition, [&] { touch_y(); });
      return;
    }
    case PlanMistake::calls_without_leave:
      plan.vendor_call("cusolver.sgeqrf", {y.place, y.place}, {1, 1, 1, 1, 1, 1});
      return;
    case PlanMistake::multiplies_into_an_input:
    case PlanMistake::multiplies_mixed_types:
    case PlanMistake::multiplies_beyond_a_buffer:
      return multiply_wrongly(plan, x, y, mistake);
    case PlanMistake::box_too_large:
    case PlanMistake::box_not_whole:
    case PlanMistake::swizzle_too_narrow:
    case PlanMistake::odd_stride:
    case PlanMistake::tensor_map_beyond_a_buffer:
      return map_wrongly(plan, y, mistake);
    default:
      launch_wrongly(plan, y, mistake);
      return count_wrongly(plan, x, y, mistake);
  }
}
