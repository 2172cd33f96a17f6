// Copies between the caller's matrices and the gap-free column-major batches that kernels work on.
#pragma once

#include <cuda_runtime_api.h>
#include <kernelbeam/cuda/matrices.h>
#include <kernelbeam/status.h>

#include <cstdint>

namespace kernelbeam::cuda {

struct BatchShape {
  std::int64_t batch = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t elements() const { return batch * rows * columns; }
};

template <typename T>
bool is_gap_free(const BasicMatrices<T>& matrices, const BatchShape& shape) {
  if (matrices.each != nullptr) return false;
  // One row or one column lies alike in both orders.
  if (matrices.order == Order::row_major && shape.rows > 1 && shape.columns > 1) return false;
  const bool by_rows = matrices.order == Order::row_major;
  const std::int64_t line = by_rows ? shape.columns : shape.rows;
  const std::int64_t lines = by_rows ? shape.rows : shape.columns;
  return (matrices.leading == 0 || matrices.leading == line || lines == 1) &&
         (matrices.stride == 0 || matrices.stride == shape.rows * shape.columns ||
          shape.batch == 1);
}

// dense[b][j][i] := element (i, j) of matrix b, and back.
Status gather(const ConstMatrices& from, float* dense, const BatchShape& shape,
              cudaStream_t stream);
Status scatter(const float* dense, const Matrices& to, const BatchShape& shape,
               cudaStream_t stream);

// A gap-free batch as matrices.
inline Matrices dense_matrices(float* first) {
  return {.first = first};
}

}  // namespace kernelbeam::cuda
