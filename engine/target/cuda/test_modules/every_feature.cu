// A plan with every feature of the contract, and the problem's two plans. Only ever planned: the
// kernels do next to nothing.
#include <kbeam/candidate.h>
#include <kbeam/problem_cuda.h>

namespace {

struct Padded {  // 3 bytes of padding after `flag`, 4 after `count`
  char flag;
  float scale[5];
  double tail;
  int count;
};

__constant__ float weights[4] = {1, 2, 4, 8};

template <int kBlock>
__global__ void scale(float* y, const float* x, std::int64_t n, float factor) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  if (i < n) y[i] = factor * x[i] * weights[i % 4];
}
__global__ void use_struct(float* y, Padded padded, bool on, short small) {
  if (on) y[threadIdx.x] = padded.scale[small % 5];
}
__global__ void __launch_bounds__(256, 2)
    take_table(float* y, const int* table, const float* none) {
  __shared__ float held[256];
  held[threadIdx.x] = none == nullptr ? static_cast<float>(table[threadIdx.x % 3]) : 0;
  __syncthreads();
  y[threadIdx.x] = held[threadIdx.x ^ 1];
}
__global__ void __cluster_dims__(2, 1, 1) fixed_cluster(float* y) {
  y[blockIdx.x] = 0;
}
__global__ void free_cluster(float* y) {
  y[blockIdx.x] = 1;
}
__global__ void large_shared(float* y) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = y[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = dynamic[threadIdx.x ^ 1];
}
__global__ void whole_grid(float* y, int* counter) {
  if (threadIdx.x == 0) atomicAdd(counter, 1);
  y[blockIdx.x] = 2;
}
__global__ void early(float* y) {
  asm volatile("griddepcontrol.launch_dependents;");
  y[blockIdx.x] = 3;
}
__global__ void late(float* y) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  y[blockIdx.x] += 1;
}
__global__ void tile(const __grid_constant__ CUtensorMap map, float* y) {
  if (threadIdx.x == 0) asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
  y[threadIdx.x] = 4;
}
__global__ void decide(cudaGraphConditionalHandle handle, const float* y) {
  cudaGraphSetConditional(handle, y[0] > 0 ? 1 : 0);
}

}  // namespace
static __global__ void store(float* y, float value) {
  *y = value;
}

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("x");
  const auto y = args.output<float>("y");
  const std::int64_t batch = x.dim(0), n = x.dim(1);
  if (n > 4096) return plan.not_supported("only up to 4096 columns");
  const auto wide = [](std::int64_t count, int by) { return (count + by - 1) / by; };

  plan.copy(y, x, batch * n);
  plan.launch(scale<128>, {.grid = wide(batch * n, 128), .block = 128}, y, x, batch * n, 3.0f);
  plan.launch(scale<256>, {.grid = {wide(n, 256), batch}, .block = {128, 2}}, y + n, x, n, 2.0f);
  // Padding that differs from process to process must not reach the plan.
  Padded padded;
  std::memset(static_cast<void*>(&padded),
              static_cast<int>(reinterpret_cast<std::uintptr_t>(&plan) >> 12), sizeof padded);
  padded.flag = 1;
  for (float& factor : padded.scale) factor = 0;
  padded.tail = 0;
  padded.count = static_cast<int>(batch);
  plan.launch(use_struct, {.grid = 1, .block = 32}, y, padded, true, 3);
  const auto table = plan.table(std::vector<int>{5, 6, 7});
  plan.launch(take_table, {.grid = 1, .block = 256}, y, table, nullptr);

  plan.launch(fixed_cluster, {.grid = 8, .block = 32}, y);
  plan.launch(free_cluster, {.grid = 32, .block = 64, .cluster = 16}, y);
  plan.launch(large_shared,
              {.grid = 2, .block = 256, .shared_bytes = 160 * 1024, .shared_carveout_percent = 100},
              y);
  const auto counters = plan.zeroed_scratch<int>(4);
  const int blocks = plan.resident_blocks(whole_grid, 256, 0) * plan.device().multiprocessors;
  plan.note("resident", std::to_string(blocks));
  plan.launch(whole_grid, {.grid = blocks, .block = 256, .cooperative = true}, y, counters);
  plan.launch(early, {.grid = 4, .block = 32}, y);
  plan.launch(late, {.grid = 4, .block = 32, .overlap_previous = true}, y);

  const auto map = plan.tensor_map<const float>(
      {.base = x,
       .dims = {static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(batch)},
       .strides = {static_cast<std::uint64_t>(n)},
       .box = {16, 4},
       .swizzle = CU_TENSOR_MAP_SWIZZLE_64B});
  const kbeam::Node forked = plan.launch(tile, {.grid = 1, .block = 32}, map, y);

  // Two branches from one node, joined again.
  const auto left = plan.scratch<float>(batch * n);
  const auto right = plan.scratch<float>(batch * n);
  const kbeam::Node first = plan.fill(left, batch * n, 0, {forked});
  const kbeam::Node second =
      plan.launch(store, {.grid = 1, .block = 1, .after = {forked}}, right, 1.0f);
  const kbeam::Node third = plan.fill(right + 4, 4, 255, {second});
  plan.launch(store, {.grid = 1, .block = 1, .after = {first, third}}, left, 2.0f);

  plan.gemm({.m = n,
             .n = 4,
             .k = 4,
             .batch = 1,
             .a = right.place,
             .b = left.place,
             .c = y.place,
             .lda = n,
             .ldb = 4,
             .ldc = n});
  const auto chosen = plan.condition(1);
  plan.launch(decide, {.grid = 1, .block = 1}, chosen, y);
  plan.when(
      chosen, [&] { plan.launch(store, {.grid = 1, .block = 1}, y, 5.0f); },
      [&] {
        plan.launch(store, {.grid = 1, .block = 1}, y, 6.0f);
        plan.fill(y, 4, 0);
      });
  plan.vendor_call("cusolver.sgeqrf", {y.place}, {batch, n});
}

namespace {
__global__ void make(float* x, const kbeam::Control* control, std::int64_t count) {
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x)
    x[i] = static_cast<float>(control->seed + i);
}
__global__ void judge(const float* x, const float* y, kbeam::FigureCell* worst,
                      std::int64_t count) {
  for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x)
    kbeam::raise_figure(worst, double{y[i]} - x[i], i);
}
}  // namespace

KBEAM_GENERATE(plan, args) {
  const auto x = args.output<float>("x");
  plan.note("family", args.text("family"));
  plan.launch(make, {.grid = 1, .block = 256}, x, plan.control(args), x.dim(0) * x.dim(1));
}

KBEAM_CHECK(plan, args) {
  const auto x = args.input<float>("x");
  const auto y = args.input<float>("y");
  const auto worst = plan.figure({.name = "difference",
                                  .unit = "1",
                                  .limit = args.text("depth") == "full" ? 1.0 : 2.0,
                                  .where = {{"row", x.dim(0)}, {"column", x.dim(1)}}});
  plan.launch(judge, {.grid = 1, .block = 256}, x, y, worst, x.dim(0) * x.dim(1));
}
