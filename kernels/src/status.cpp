#include <kernelbeam/status.h>

namespace kernelbeam {

const char* describe(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::bad_shape:
      return "a size is negative or beyond the limit of the call";
    case Status::bad_stride:
      return "a leading dimension or batch stride is too small for the shape";
    case Status::null_pointer:
      return "an array that the shape needs is null";
    case Status::overlap:
      return "arrays overlap; only h equal to a with the same strides is allowed";
    case Status::workspace_too_small:
      return "the workspace is smaller than the size query asks for";
    case Status::not_supported:
      return "no kernel of this library runs on this processor or device";
    case Status::out_of_memory:
      return "out of memory while planning a new shape";
    case Status::internal_error:
      return "the library failed; please report it with the shape of the call";
    case Status::device_error:
      return "a call of CUDA failed, perhaps because of work that was enqueued before";
  }
  return "unknown status";
}

}  // namespace kernelbeam
