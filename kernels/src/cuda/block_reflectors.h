// Products with Q from its compact form: I - V T V' of 32 reflectors at a time, FP32 throughout.
// Matrices are gap-free and column-major.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelbeam/status.h>

#include <cstddef>
#include <cstdint>

namespace kernelbeam::cuda {

struct ReflectorShape {
  std::int64_t batch = 0;
  std::int64_t m = 0;           // rows of V and of C
  std::int64_t k = 0;           // reflectors
  std::int64_t p = 0;           // columns of C
  std::int64_t tau_stride = 0;  // from one matrix's scales to the next's
  std::int64_t h_columns = 0;   // of one matrix of H, at least k
};

// Bytes of the triangular factors T of all blocks of all matrices.
std::size_t triangular_factor_bytes(const ReflectorShape& shape);

// T of every block: upper triangular, T_bb = tau_b, T_ab = -tau_b (T V'v_b)_a.
Status form_triangular_factors(const float* h, const float* tau, float* t,
                               const ReflectorShape& shape, cudaStream_t stream);

enum class Apply { q, q_transposed };
// C := Q C or Q' C. `c_is_identity`: C holds the first columns of I, and products with its zeros
// are left out.
Status apply_reflectors(Apply which, const float* h, const float* t, float* c,
                        const ReflectorShape& shape, bool c_is_identity, cudaStream_t stream);

}  // namespace kernelbeam::cuda
