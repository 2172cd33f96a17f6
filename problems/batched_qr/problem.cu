// Batched Householder QR on the GPU: the inputs of a case, and the FP64 checks of its outputs. The
// rules are those of problem.cpp; README.md has the mathematics.
#include <kbeam/problem_cuda.h>

#include "check.cuh"
#include "generate.cuh"

KBEAM_GENERATE(plan, args) {
  batched_qr::describe_generation(plan, args);
}

KBEAM_CHECK(plan, args) {
  batched_qr::describe_check(plan, args);
}
