// The C interface of the GPU library: the same calls, forwarded.
#include <kernelbeam/cuda/qr.h>
#include <kernelbeam/kernelbeam_cuda.h>

#include <memory>
#include <new>
#include <utility>

namespace cuda = kernelbeam::cuda;

struct kernelbeam_device {
  std::unique_ptr<cuda::Device> device;
};

namespace {

cuda::Matrices as(const kernelbeam_matrices& given) {
  return {.first = given.first,
          .leading = given.leading,
          .stride = given.stride,
          .order = static_cast<cuda::Order>(given.order),
          .each = given.each};
}
cuda::ConstMatrices as_input(const kernelbeam_matrices& given) {
  return {.first = given.first,
          .leading = given.leading,
          .stride = given.stride,
          .order = static_cast<cuda::Order>(given.order),
          .each = given.each};
}

cuda::Geqrf as_call(const kernelbeam_cuda_geqrf& call) {
  return {.batch = call.batch,
          .m = call.m,
          .n = call.n,
          .a = as_input(call.a),
          .h = as(call.h),
          .tau = call.tau,
          .tau_stride = call.tau_stride};
}
cuda::Ormqr as_call(const kernelbeam_cuda_ormqr& call) {
  return {.batch = call.batch,
          .m = call.m,
          .p = call.p,
          .k = call.k,
          .transpose = call.transpose != 0,
          .h = as_input(call.h),
          .tau = call.tau,
          .tau_stride = call.tau_stride,
          .c = as(call.c)};
}
cuda::Orgqr as_call(const kernelbeam_cuda_orgqr& call) {
  return {.batch = call.batch,
          .m = call.m,
          .p = call.p,
          .k = call.k,
          .h = as_input(call.h),
          .tau = call.tau,
          .tau_stride = call.tau_stride,
          .q = as(call.q)};
}
cuda::Qr as_call(const kernelbeam_cuda_qr& call) {
  return {.batch = call.batch,
          .m = call.m,
          .n = call.n,
          .complete = call.complete != 0,
          .a = as_input(call.a),
          .q = as(call.q),
          .r = as(call.r)};
}
cuda::QrSolve as_call(const kernelbeam_cuda_qr_solve& call) {
  return {.batch = call.batch,
          .m = call.m,
          .n = call.n,
          .p = call.p,
          .a = as_input(call.a),
          .b = as_input(call.b),
          .x = as(call.x)};
}

kernelbeam_status as_c(kernelbeam::Status status) {
  return static_cast<kernelbeam_status>(static_cast<int>(status));
}

template <typename Call, typename Query>
kernelbeam_status ask(const Call* call, kernelbeam_device* device, size_t* bytes, Query query) {
  if (call == nullptr || device == nullptr) return KERNELBEAM_NULL_POINTER;
  return as_c(query(as_call(*call), *device->device, bytes));
}
template <typename Call, typename Run>
kernelbeam_status run(const Call* call, void* workspace, size_t bytes, kernelbeam_device* device,
                      cudaStream_t stream, Run enqueue) {
  if (call == nullptr || device == nullptr) return KERNELBEAM_NULL_POINTER;
  return as_c(enqueue(as_call(*call), {workspace, bytes}, *device->device, stream));
}

}  // namespace

extern "C" {

kernelbeam_device* kernelbeam_device_create(int ordinal) {
  auto device = cuda::Device::make(ordinal);
  if (!device) return nullptr;
  return new (std::nothrow) kernelbeam_device{std::move(device)};
}

void kernelbeam_device_destroy(kernelbeam_device* device) {
  delete device;
}

#define KERNELBEAM_FORWARD(operation)                                                              \
  kernelbeam_status kernelbeam_cuda_s##operation##_workspace(                                      \
      const kernelbeam_cuda_##operation* call, kernelbeam_device* device, size_t* bytes) {         \
    return ask(call, device, bytes, cuda::operation##_workspace_bytes);                            \
  }                                                                                                \
  kernelbeam_status kernelbeam_cuda_s##operation(const kernelbeam_cuda_##operation* call,          \
                                                 void* workspace, size_t workspace_bytes,          \
                                                 kernelbeam_device* device, cudaStream_t stream) { \
    return run(call, workspace, workspace_bytes, device, stream, cuda::operation);                 \
  }
KERNELBEAM_FORWARD(geqrf)
KERNELBEAM_FORWARD(ormqr)
KERNELBEAM_FORWARD(orgqr)
KERNELBEAM_FORWARD(qr)
KERNELBEAM_FORWARD(qr_solve)
#undef KERNELBEAM_FORWARD

}  // extern "C"
