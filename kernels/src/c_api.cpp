// The C interface: the same calls, forwarded.
#include <kernelbeam/executor.h>
#include <kernelbeam/kernelbeam.h>
#include <kernelbeam/qr.h>
#include <kernelbeam/status.h>

#include <memory>
#include <new>
#include <utility>

using kernelbeam::Status;

static_assert(static_cast<int>(Status::ok) == KERNELBEAM_OK);
static_assert(static_cast<int>(Status::bad_shape) == KERNELBEAM_BAD_SHAPE);
static_assert(static_cast<int>(Status::bad_stride) == KERNELBEAM_BAD_STRIDE);
static_assert(static_cast<int>(Status::null_pointer) == KERNELBEAM_NULL_POINTER);
static_assert(static_cast<int>(Status::overlap) == KERNELBEAM_OVERLAP);
static_assert(static_cast<int>(Status::workspace_too_small) == KERNELBEAM_WORKSPACE_TOO_SMALL);
static_assert(static_cast<int>(Status::not_supported) == KERNELBEAM_NOT_SUPPORTED);
static_assert(static_cast<int>(Status::out_of_memory) == KERNELBEAM_OUT_OF_MEMORY);
static_assert(static_cast<int>(Status::internal_error) == KERNELBEAM_INTERNAL_ERROR);
static_assert(static_cast<int>(Status::device_error) == KERNELBEAM_DEVICE_ERROR);

struct kernelbeam_executor {
  std::unique_ptr<kernelbeam::Executor> executor;
};

namespace {

kernelbeam::Geqrf as_call(const kernelbeam_sgeqrf& call) {
  return {.batch = call.batch,
          .m = call.m,
          .n = call.n,
          .a = call.a,
          .lda = call.lda,
          .a_stride = call.a_stride,
          .h = call.h,
          .ldh = call.ldh,
          .h_stride = call.h_stride,
          .tau = call.tau,
          .tau_stride = call.tau_stride};
}

kernelbeam_status as_c(Status status) {
  return static_cast<kernelbeam_status>(static_cast<int>(status));
}

}  // namespace

extern "C" {

const char* kernelbeam_describe(kernelbeam_status status) {
  return kernelbeam::describe(static_cast<Status>(static_cast<int>(status)));
}

kernelbeam_executor* kernelbeam_executor_create(int threads) {
  auto executor = kernelbeam::Executor::make(threads);
  if (!executor) return nullptr;
  return new (std::nothrow) kernelbeam_executor{std::move(executor)};
}

void kernelbeam_executor_destroy(kernelbeam_executor* executor) {
  delete executor;
}

kernelbeam_status kernelbeam_sgeqrf_batched_workspace(const kernelbeam_sgeqrf* call,
                                                      kernelbeam_executor* executor,
                                                      size_t* bytes) {
  if (call == nullptr || executor == nullptr) return KERNELBEAM_NULL_POINTER;
  return as_c(kernelbeam::geqrf_workspace_bytes(as_call(*call), *executor->executor, bytes));
}

kernelbeam_status kernelbeam_sgeqrf_batched(const kernelbeam_sgeqrf* call, void* workspace,
                                            size_t workspace_bytes, kernelbeam_executor* executor) {
  if (call == nullptr || executor == nullptr) return KERNELBEAM_NULL_POINTER;
  return as_c(kernelbeam::geqrf(as_call(*call), workspace, workspace_bytes, *executor->executor));
}

}  // extern "C"
