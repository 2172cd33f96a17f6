// Device code of the self test: one kernel for each thing that a plan can say, the problem's own
// generate and check kernels, and subjects that misbehave on purpose.
#include <cooperative_groups.h>
#include <cuda.h>
#include <stdint.h>

#include "self_test_layout.h"

namespace cg = cooperative_groups;
using namespace kbeam::self_test;

namespace {

__device__ int named_counter = 5;  // module state: back to 5 in every call
__device__ int hidden_counter;
__constant__ float scales[2] = {2, 1};

__device__ __forceinline__ int thread_index() {
  return blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
__device__ __forceinline__ void raise(unsigned long long* cell, double value, uint32_t index) {
  const uint32_t bits =
      value != value ? 0x7fffffffu : __float_as_uint(__double2float_ru(fabs(value)));
  atomicMax(cell, (static_cast<unsigned long long>(bits) << 32) | index);
}

}  // namespace

// ---- the problem ----

extern "C" __global__ void st_generate(const uint64_t* control, float* a) {
  const int i = thread_index();
  if (i >= kElements) return;
  uint64_t x = control[0] + 0x9e3779b97f4a7c15ull * (i + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  a[i] = static_cast<float>(x >> 40) * 0x1p-24f;
}
extern "C" __global__ void st_check_affine(const float* a, const float* y,
                                           unsigned long long* cell) {
  const int i = thread_index();
  if (i < kElements) raise(cell, y[i] - (2.0 * a[i] + 1.0), i);
}
extern "C" __global__ void st_check_marks(const uint32_t* marks, unsigned long long* cell) {
  const int i = thread_index();
  if (i < kMarks && marks[i] != expected_mark(i)) raise(cell, 1, i);
}
// Y = A A, column-major.
extern "C" __global__ void st_check_product(const float* a, const float* y,
                                            unsigned long long* cell) {
  const int i = thread_index();
  if (i >= kElements) return;
  double sum = 0;
  for (int k = 0; k < kSide; ++k)
    sum += static_cast<double>(a[i % kSide + k * kSide]) * a[k + i / kSide * kSide];
  raise(cell, (y[i] - sum) / sum, i);
}
// A factor R of each matrix has its first entry as large as the first column of the matrix.
extern "C" __global__ void st_check_factor(const float* a, const float* y,
                                           unsigned long long* cell) {
  const int matrix = thread_index();
  if (matrix >= kMatrices) return;
  const int first = matrix * kMatrixSide * kMatrixSide;
  double sum = 0;
  for (int i = 0; i < kMatrixSide; ++i) sum += static_cast<double>(a[first + i]) * a[first + i];
  raise(cell, (fabs(static_cast<double>(y[first])) - sqrt(sum)) / sqrt(sum), matrix);
}

// ---- features ----

extern "C" __global__ void st_affine(const float* a, float* y, Affine affine) {
  const int i = thread_index();
  if (i < affine.elements)
    y[i] = affine.scale[i % 4] * scales[0] * a[i] + static_cast<float>(affine.offset) * scales[1];
}
extern "C" __global__ void st_rotate(uint32_t* marks) {  // cluster size given by the plan
  __shared__ uint32_t mine;
  auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) mine = blockIdx.x;
  cluster.sync();
  if (threadIdx.x == 0)
    marks[blockIdx.x] =
        *cluster.map_shared_rank(&mine, (cluster.block_rank() + 1) % cluster.num_blocks());
  cluster.sync();
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) st_pair(uint32_t* marks) {
  if (threadIdx.x == 0) marks[blockIdx.x] = cg::this_cluster().num_blocks();
}
// Lets the next kernel start at once, writes much later.
extern "C" __global__ void st_early(uint32_t* data, uint32_t value, uint64_t wait_ns) {
  asm volatile("griddepcontrol.launch_dependents;");
  const uint64_t begin = nanoseconds();
  while (nanoseconds() - begin < wait_ns) {
  }
  if (threadIdx.x == 0) data[blockIdx.x] = value;
}
extern "C" __global__ void st_late(const uint32_t* data, uint32_t* marks) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  if (threadIdx.x == 0) marks[blockIdx.x] = data[blockIdx.x] + 1;
}
extern "C" __global__ void st_everyone(uint32_t* counter, uint32_t* marks) {  // cooperative
  if (threadIdx.x == 0) atomicAdd(counter, 1u);
  cg::this_grid().sync();
  if (threadIdx.x == 0) marks[blockIdx.x] = *static_cast<volatile uint32_t*>(counter);
}
extern "C" __global__ void st_big_shared(uint32_t* marks) {
  extern __shared__ uint32_t words[];
  for (int i = threadIdx.x; i < kSharedWords; i += blockDim.x) words[i] = i;
  __syncthreads();
  if (threadIdx.x == 0) marks[blockIdx.x] = words[kSharedWords - 1];
}
extern "C" __global__ void st_tile(const __grid_constant__ CUtensorMap map, const float* a,
                                   uint32_t* mark, int row, int column) {
  __shared__ __align__(128) float box[kBox * kBox];
  __shared__ uint64_t barrier;
  __shared__ uint32_t right;
  const auto bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(box));
  if (threadIdx.x == 0) {
    right = 0;
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" ::"r"(bar)
        : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                 "n"(kBox * kBox * 4)
                 : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(&map), "r"(column), "r"(row), "r"(bar)
        : "memory");
  }
  __syncthreads();
  for (uint32_t done = 0; done == 0;)
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(bar)
        : "memory");
  for (int i = threadIdx.x; i < kBox * kBox; i += blockDim.x)
    if (box[i] == a[(row + i / kBox) * kSide + column + i % kBox]) atomicAdd(&right, 1u);
  __syncthreads();
  if (threadIdx.x == 0) *mark = right;
}
extern "C" __global__ void st_count(uint32_t* marks) {
  marks[0] = static_cast<uint32_t>(++named_counter);
  marks[1] = static_cast<uint32_t>(++hidden_counter);
}
extern "C" __global__ void st_decide(cudaGraphConditionalHandle condition, uint32_t value) {
  cudaGraphSetConditional(condition, value);
}
extern "C" __global__ void st_store(uint32_t* mark, uint32_t value) {
  *mark = value;
}
extern "C" __global__ void st_sum_table(const uint32_t* table, int count, uint32_t* mark) {
  uint32_t sum = 0;
  for (int i = 0; i < count; ++i) sum += table[i];
  *mark = sum;
}
// Into a counter that starts at zero; the last thread's value is the mark.
extern "C" __global__ void st_count_words(const uint32_t* words, uint64_t count, uint32_t expected,
                                          uint32_t* sum) {
  uint32_t mine = 0;
  for (uint64_t i = thread_index(); i < count; i += static_cast<uint64_t>(gridDim.x) * blockDim.x)
    mine += words[i] == expected;
  atomicAdd(sum, mine);
}
extern "C" __global__ void st_publish(const uint32_t* sum, uint32_t* mark) {
  *mark = *sum;
}

// ---- misbehaviour ----

extern "C" __global__ void st_set(float* at, float value) {
  *at = value;
}
extern "C" __global__ void st_hang(const float* a) {
  while (*static_cast<const volatile float*>(a) != -1) {
  }
}
extern "C" __global__ void st_return(float*) {}
// Reads everything; with pin, asks the cache to keep it.
extern "C" __global__ void st_read(const float4* data, uint64_t count, int pin, float* sink) {
  float sum = 0;
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  for (uint64_t i = thread_index(); i < count; i += static_cast<uint64_t>(gridDim.x) * blockDim.x) {
    float4 v;
    if (pin)
      asm volatile("ld.global.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
                   : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                   : "l"(data + i), "l"(policy));
    else
      v = data[i];
    sum += v.x + v.y + v.z + v.w;
  }
  if (sum == 12345.f) *sink = sum;
}
