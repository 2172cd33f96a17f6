// How a caller's batch of matrices lies in device memory.
#pragma once

#include <cstdint>

namespace kernelbeam::cuda {

enum class Order { column_major, row_major };

// Element (i, j) of matrix b is first[b * stride + j * leading + i]; row-major, it is
// first[b * stride + i * leading + j]. A zero `leading` or `stride` leaves no gap.
template <typename T>
struct BasicMatrices {
  T* first = nullptr;
  std::int64_t leading = 0;
  std::int64_t stride = 0;
  Order order = Order::column_major;
  // Instead of `first` and `stride`: `batch` pointers in device memory.
  T* const* each = nullptr;
};
using Matrices = BasicMatrices<float>;
using ConstMatrices = BasicMatrices<const float>;

}  // namespace kernelbeam::cuda
