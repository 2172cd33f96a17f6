// What a call of the library returns. The library never throws, prints or aborts on what a caller
// passes in.
#pragma once

namespace kernelbeam {

enum class [[nodiscard]] Status : int{
    ok = 0,
    bad_shape = 1,            // a negative size, or one beyond the documented limit
    bad_stride = 2,           // a leading dimension or batch stride that makes matrices overlap
    null_pointer = 3,         // an array that the shape needs is null
    overlap = 4,              // arrays share memory in a way that is not allowed
    workspace_too_small = 5,  // smaller than the size query says, or null
    not_supported = 6,        // no kernel of this library runs on this processor or device
    out_of_memory = 7,
    internal_error = 8,  // a fault of the library: please report it
    device_error = 9,    // a call of CUDA failed, perhaps because of work enqueued before
};

// One lower-case sentence without a full stop.
const char* describe(Status status) noexcept;

}  // namespace kernelbeam
