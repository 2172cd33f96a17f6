/* The C interface of the GPU library. Meaning, limits and accuracy of each call are documented in
   kernelbeam/cuda/qr.h. */
#ifndef KERNELBEAM_KERNELBEAM_CUDA_H
#define KERNELBEAM_KERNELBEAM_CUDA_H

#include <cuda_runtime_api.h>
#include <kernelbeam/kernelbeam.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One device; null when there is no such device or the library has no kernels for it. */
typedef struct kernelbeam_device kernelbeam_device;
kernelbeam_device* kernelbeam_device_create(int ordinal);
void kernelbeam_device_destroy(kernelbeam_device* device);

typedef enum kernelbeam_order {
  KERNELBEAM_COLUMN_MAJOR = 0,
  KERNELBEAM_ROW_MAJOR = 1
} kernelbeam_order;

/* A batch in device memory: `first` with strides, or `each`, an array of pointers in device memory.
   Set what you do not use to zero. Matrices that a call only reads are not written. */
typedef struct kernelbeam_matrices {
  float* first;
  int64_t leading;
  int64_t stride;
  kernelbeam_order order;
  float* const* each;
} kernelbeam_matrices;

typedef struct kernelbeam_cuda_geqrf {
  int64_t batch, m, n;
  kernelbeam_matrices a, h;
  float* tau;
  int64_t tau_stride;
} kernelbeam_cuda_geqrf;

typedef struct kernelbeam_cuda_ormqr {
  int64_t batch, m, p, k;
  int transpose;
  kernelbeam_matrices h;
  const float* tau;
  int64_t tau_stride;
  kernelbeam_matrices c;
} kernelbeam_cuda_ormqr;

typedef struct kernelbeam_cuda_orgqr {
  int64_t batch, m, p, k;
  kernelbeam_matrices h;
  const float* tau;
  int64_t tau_stride;
  kernelbeam_matrices q;
} kernelbeam_cuda_orgqr;

typedef struct kernelbeam_cuda_qr {
  int64_t batch, m, n;
  int complete;
  kernelbeam_matrices a, q, r;
} kernelbeam_cuda_qr;

typedef struct kernelbeam_cuda_qr_solve {
  int64_t batch, m, n, p;
  kernelbeam_matrices a, b, x;
} kernelbeam_cuda_qr_solve;

kernelbeam_status kernelbeam_cuda_sgeqrf_workspace(const kernelbeam_cuda_geqrf* call,
                                                   kernelbeam_device* device, size_t* bytes);
kernelbeam_status kernelbeam_cuda_sgeqrf(const kernelbeam_cuda_geqrf* call, void* workspace,
                                         size_t workspace_bytes, kernelbeam_device* device,
                                         cudaStream_t stream);
kernelbeam_status kernelbeam_cuda_sormqr_workspace(const kernelbeam_cuda_ormqr* call,
                                                   kernelbeam_device* device, size_t* bytes);
kernelbeam_status kernelbeam_cuda_sormqr(const kernelbeam_cuda_ormqr* call, void* workspace,
                                         size_t workspace_bytes, kernelbeam_device* device,
                                         cudaStream_t stream);
kernelbeam_status kernelbeam_cuda_sorgqr_workspace(const kernelbeam_cuda_orgqr* call,
                                                   kernelbeam_device* device, size_t* bytes);
kernelbeam_status kernelbeam_cuda_sorgqr(const kernelbeam_cuda_orgqr* call, void* workspace,
                                         size_t workspace_bytes, kernelbeam_device* device,
                                         cudaStream_t stream);
kernelbeam_status kernelbeam_cuda_sqr_workspace(const kernelbeam_cuda_qr* call,
                                                kernelbeam_device* device, size_t* bytes);
kernelbeam_status kernelbeam_cuda_sqr(const kernelbeam_cuda_qr* call, void* workspace,
                                      size_t workspace_bytes, kernelbeam_device* device,
                                      cudaStream_t stream);
kernelbeam_status kernelbeam_cuda_sqr_solve_workspace(const kernelbeam_cuda_qr_solve* call,
                                                      kernelbeam_device* device, size_t* bytes);
kernelbeam_status kernelbeam_cuda_sqr_solve(const kernelbeam_cuda_qr_solve* call, void* workspace,
                                            size_t workspace_bytes, kernelbeam_device* device,
                                            cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
