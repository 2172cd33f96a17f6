/* The C interface. Meaning, limits and accuracy of each call are documented in kernelbeam/qr.h. */
#ifndef KERNELBEAM_KERNELBEAM_H
#define KERNELBEAM_KERNELBEAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kernelbeam_status {
  KERNELBEAM_OK = 0,
  KERNELBEAM_BAD_SHAPE = 1,
  KERNELBEAM_BAD_STRIDE = 2,
  KERNELBEAM_NULL_POINTER = 3,
  KERNELBEAM_OVERLAP = 4,
  KERNELBEAM_WORKSPACE_TOO_SMALL = 5,
  KERNELBEAM_NOT_SUPPORTED = 6,
  KERNELBEAM_OUT_OF_MEMORY = 7,
  KERNELBEAM_INTERNAL_ERROR = 8,
  KERNELBEAM_DEVICE_ERROR = 9
} kernelbeam_status;

const char* kernelbeam_describe(kernelbeam_status status);

/* A team of threads and the plans of earlier calls. One call at a time; `threads` 0 means all
   processors. Null when the threads cannot be started. */
typedef struct kernelbeam_executor kernelbeam_executor;
kernelbeam_executor* kernelbeam_executor_create(int threads);
void kernelbeam_executor_destroy(kernelbeam_executor* executor);

/* Set what you do not use to zero: a zero leading dimension means m, a zero stride means no gaps.
 */
typedef struct kernelbeam_sgeqrf {
  int64_t batch;
  int64_t m;
  int64_t n;
  const float* a;
  int64_t lda;
  int64_t a_stride;
  float* h;
  int64_t ldh;
  int64_t h_stride;
  float* tau;
  int64_t tau_stride;
} kernelbeam_sgeqrf;

kernelbeam_status kernelbeam_sgeqrf_batched_workspace(const kernelbeam_sgeqrf* call,
                                                      kernelbeam_executor* executor, size_t* bytes);
kernelbeam_status kernelbeam_sgeqrf_batched(const kernelbeam_sgeqrf* call, void* workspace,
                                            size_t workspace_bytes, kernelbeam_executor* executor);

#ifdef __cplusplus
}
#endif

#endif
