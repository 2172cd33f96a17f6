// The C interface between the plan function of a CUDA candidate and whoever records its launches.
// Candidates do not include this directly; kbeam/launch_plan.h wraps it. Changing anything here
// raises KBEAM_CUDA_ABI.
#pragma once

#include <kbeam/plan_abi.h>
#include <stdint.h>

#define KBEAM_CUDA_ABI 2

#ifdef __cplusplus
extern "C" {
#endif

// A place in a buffer of the plan: its id, and bytes from its start.
struct kbeam_pointer {
  int32_t buffer;
  int64_t offset_bytes;
};

// What stands for a kernel argument until the call: plain bytes, an address, a TMA descriptor, a
// conditional handle.
enum kbeam_argument_kind {
  KBEAM_VALUE = 0,
  KBEAM_ADDRESS = 1,
  KBEAM_TENSOR_MAP = 2,
  KBEAM_CONDITION = 3
};

struct kbeam_argument {
  int32_t kind;
  uint32_t size;                 // bytes of the kernel's parameter
  const void* value;             // KBEAM_VALUE; the host copies it
  struct kbeam_pointer address;  // KBEAM_ADDRESS
  int32_t id;                    // KBEAM_TENSOR_MAP, KBEAM_CONDITION
};

// What a node waits for: the node before it (count < 0), or exactly the nodes listed (none: the
// start of the plan or of the conditional body).
struct kbeam_after {
  const int32_t* nodes;
  int32_t count;
};

struct kbeam_launch {
  const void* kernel;  // the host address of a __global__ function of this object
  int64_t grid[3];     // thread blocks
  int64_t block[3];    // threads
  int64_t cluster[3];  // thread blocks; 0: not given at launch
  int64_t dynamic_shared_bytes;
  int32_t cooperative;       // grid-wide synchronisation is used
  int32_t overlap_previous;  // programmatic dependent launch: waits for one node, a kernel
  int32_t
      shared_carveout_percent;  // preferred share of L1 as shared memory; -1: the driver's choice
  struct kbeam_after after;
  const struct kbeam_argument* arguments;
  uint32_t argument_count;
};

// A tiled tensor map (cuTensorMapEncodeTiled), dimensions fastest first.
struct kbeam_tensor_map {
  struct kbeam_pointer base;
  int32_t data_type;  // CUtensorMapDataType
  int32_t rank;
  uint64_t dim[5];
  uint64_t stride_bytes[5];  // [0] is unused: the fastest dimension is dense
  uint32_t box[5];
  uint32_t element_stride[5];
  int32_t interleave;    // CUtensorMapInterleave
  int32_t swizzle;       // CUtensorMapSwizzle
  int32_t l2_promotion;  // CUtensorMapL2promotion
  int32_t fill;          // CUtensorMapFloatOOBfill
};

enum kbeam_gemm_type {
  KBEAM_GEMM_F16 = 0,
  KBEAM_GEMM_BF16 = 1,
  KBEAM_GEMM_F32 = 2,
  KBEAM_GEMM_F64 = 3
};
enum kbeam_gemm_compute {
  KBEAM_COMPUTE_F32 = 0,   // FP32 throughout
  KBEAM_COMPUTE_TF32 = 1,  // FP32 data, one TF32 product
  KBEAM_COMPUTE_F64 = 2
};

// C = alpha op(A) op(B) + beta C for a strided batch, column-major, by the vendor's library.
struct kbeam_gemm {
  int32_t transpose_a, transpose_b;
  int64_t m, n, k, batch;
  int32_t type_a_b, type_c, compute;  // kbeam_gemm_type, kbeam_gemm_type, kbeam_gemm_compute
  double alpha, beta;
  struct kbeam_pointer a, b, c;
  int64_t lda, ldb, ldc;                 // elements
  int64_t stride_a, stride_b, stride_c;  // elements from one matrix of the batch to the next
  struct kbeam_after after;
};

// A routine of a vendor's library by name ("cusolver.sgeqrf"): baselines only. What pointers and
// numbers mean is the routine's own list (docs/cuda.md).
struct kbeam_vendor_call {
  const char* routine;
  const struct kbeam_pointer* pointers;
  uint32_t pointer_count;
  const int64_t* numbers;
  uint32_t number_count;
  struct kbeam_after after;
};

// One error figure of a check plan. The device keeps, per figure, the worst value and where it was;
// the host compares it with the limit. `where` of an index i is spelled with the radix names, last
// one fastest: {"matrix", "column"} x {batch, n}.
struct kbeam_figure {
  const char* name;
  const char* unit;
  double limit;
  const char* radix_name[3];
  int64_t radix[3];
  int32_t radix_count;
  int32_t not_finite;  // a violation is `not_finite`, not `wrong_value`
};

// What a plan may know of the device; nothing here is asked of a driver, so that a plan can be made
// anywhere.
struct kbeam_device {
  int32_t multiprocessors;
  int32_t architecture;            // 90 for compute capability 9.0
  int64_t shared_bytes_per_block;  // the opt-in maximum
  int64_t shared_bytes_per_multiprocessor;
  int64_t registers_per_multiprocessor;
  int32_t threads_per_multiprocessor;
  int32_t l2_bytes;
  // Clusters of i + 1 blocks that are resident at once, with one and with two blocks a
  // multiprocessor; 0: unknown.
  int32_t resident_clusters[2][16];
};

struct kbeam_cuda_host {
  uint32_t abi;
  void* self;
  const struct kbeam_device* device;
  int32_t (*find_buffer)(void* self, const char* name, int32_t role, int32_t element_type,
                         struct kbeam_buffer* found);
  int64_t (*axis)(void* self, const char* name);
  const char* (*text)(void* self, const char* key);  // problem plans: "family", "grade", "depth"
  int32_t (*scratch)(void* self, int64_t bytes, int32_t zeroed);
  int32_t (*table)(void* self, const void* content, int64_t bytes);
  int32_t (*tensor_map)(void* self, const struct kbeam_tensor_map* request);
  int32_t (*condition)(void* self, uint32_t initial);
  int32_t (*figure)(void* self, const struct kbeam_figure* figure, struct kbeam_pointer* cell);
  // Blocks of `kernel` that are resident on one multiprocessor; 0 when the launch cannot run.
  int32_t (*resident_blocks)(void* self, const void* kernel, int32_t threads,
                             int64_t dynamic_shared_bytes);
  // Each returns the node's id.
  int32_t (*launch)(void* self, const struct kbeam_launch* launch);
  int32_t (*fill)(void* self, struct kbeam_pointer to, int64_t bytes, uint32_t byte_value,
                  struct kbeam_after after);
  int32_t (*copy)(void* self, struct kbeam_pointer to, struct kbeam_pointer from, int64_t bytes,
                  struct kbeam_after after);
  int32_t (*gemm)(void* self, const struct kbeam_gemm* gemm);
  int32_t (*vendor_call)(void* self, const struct kbeam_vendor_call* call);
  int32_t (*begin_if)(void* self, int32_t condition, int32_t has_else, struct kbeam_after after);
  void (*begin_else)(void* self);
  void (*end_if)(void* self);
  void (*note)(void* self, const char* key, const char* value);
  void (*fail)(void* self, int32_t kind, const char* message);
};

typedef void kbeam_cuda_plan_function(const struct kbeam_cuda_host* host);

#ifdef __cplusplus
}
#endif
