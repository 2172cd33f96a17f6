// Copies between the caller's strided matrices and the gap-free batches that the kernels work on.
#pragma once

#include <algorithm>
#include <cstdint>

namespace kernelbeam {

// Columns of `rows` elements: column j of matrix b starts at data + b * matrix_stride + j *
// column_stride.
template <typename T>
struct Columns {
  T* data = nullptr;
  std::int64_t column_stride = 0;
  std::int64_t matrix_stride = 0;
};

struct BatchShape {
  std::int64_t batch = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

template <typename From, typename To>
void copy_columns(const Columns<From>& from, const Columns<To>& to, const BatchShape& shape) {
  for (std::int64_t b = 0; b < shape.batch; ++b)
    for (std::int64_t j = 0; j < shape.columns; ++j)
      std::copy_n(from.data + b * from.matrix_stride + j * from.column_stride, shape.rows,
                  to.data + b * to.matrix_stride + j * to.column_stride);
}

template <typename T>
bool is_contiguous(const Columns<T>& operand, const BatchShape& shape) {
  return (operand.column_stride == shape.rows || shape.columns == 1) &&
         (operand.matrix_stride == shape.rows * shape.columns || shape.batch == 1);
}

// Elements from the first to one behind the last.
template <typename T>
std::int64_t extent(const Columns<T>& operand, const BatchShape& shape) {
  return (shape.batch - 1) * operand.matrix_stride + (shape.columns - 1) * operand.column_stride +
         shape.rows;
}

}  // namespace kernelbeam
