#include <algorithm>

#include "cuda/check.h"
#include "cuda/staging.h"

namespace kernelbeam::cuda {
namespace {

constexpr int kTile = 32;
constexpr int kTileRows = 8;  // threads of a tile, along its columns
constexpr std::int64_t kMostBlocks = 65535;

// Where element (i, j) lies: a place i * row_step + j * column_step from the matrix's start.
struct Layout {
  std::int64_t row_step, column_step, stride;
};

template <typename T>
Layout layout_of(const BasicMatrices<T>& matrices, const BatchShape& shape) {
  const bool by_rows = matrices.order == Order::row_major;
  const std::int64_t line = by_rows ? shape.columns : shape.rows;
  const std::int64_t leading = matrices.leading == 0 ? line : matrices.leading;
  const std::int64_t lines = by_rows ? shape.rows : shape.columns;
  return {by_rows ? leading : 1, by_rows ? 1 : leading,
          matrices.stride == 0 ? leading * lines : matrices.stride};
}

template <typename T>
__device__ T* start_of(T* first, T* const* each, const Layout& layout, std::int64_t matrix) {
  return each != nullptr ? each[matrix] : first + matrix * layout.stride;
}

// Tiles of 32 x 32 through shared memory where one side goes by rows, so that both sides are read
// and written in whole lines.
template <bool kToDense, typename T>
__global__ void __launch_bounds__(kTile* kTileRows)
    move(T* first, T* const* each, Layout layout,
         std::conditional_t<kToDense, float*, const float*> dense, BatchShape shape,
         std::int64_t tiles_down, std::int64_t tiles) {
  __shared__ float tile[kTile][kTile + 1];
  const std::int64_t matrix_size = shape.rows * shape.columns;
  const bool turned = layout.row_step != 1;
  for (std::int64_t block = blockIdx.x; block < tiles; block += gridDim.x) {
    const std::int64_t per_matrix = tiles / shape.batch;
    const std::int64_t matrix = block / per_matrix, within = block % per_matrix;
    const std::int64_t row = within % tiles_down * kTile, column = within / tiles_down * kTile;
    T* const outside = start_of(first, each, layout, matrix);
    const auto of_dense = [&](std::int64_t i, std::int64_t j) {
      return matrix * matrix_size + j * shape.rows + i;
    };
    const auto of_outside = [&](std::int64_t i, std::int64_t j) {
      return i * layout.row_step + j * layout.column_step;
    };
    // `x` runs along the lines of whichever side is read or written.
    const auto each_place = [&](bool by_rows, auto visit) {
      for (int y = threadIdx.y; y < kTile; y += kTileRows) {
        const int i = by_rows ? y : threadIdx.x, j = by_rows ? threadIdx.x : y;
        if (row + i < shape.rows && column + j < shape.columns) visit(i, j);
      }
    };
    if constexpr (kToDense) {
      each_place(turned,
                 [&](int i, int j) { tile[j][i] = outside[of_outside(row + i, column + j)]; });
      __syncthreads();
      each_place(false, [&](int i, int j) { dense[of_dense(row + i, column + j)] = tile[j][i]; });
    } else {
      each_place(false, [&](int i, int j) { tile[j][i] = dense[of_dense(row + i, column + j)]; });
      __syncthreads();
      each_place(turned,
                 [&](int i, int j) { outside[of_outside(row + i, column + j)] = tile[j][i]; });
    }
    __syncthreads();
  }
}

template <bool kToDense, typename T, typename Dense>
Status start_move(const BasicMatrices<T>& matrices, Dense* dense, const BatchShape& shape,
                  cudaStream_t stream) {
  if (shape.elements() == 0) return Status::ok;
  const std::int64_t down = (shape.rows + kTile - 1) / kTile;
  const std::int64_t tiles = shape.batch * down * ((shape.columns + kTile - 1) / kTile);
  const auto blocks = static_cast<unsigned>(std::min(tiles, kMostBlocks));
  move<kToDense><<<blocks, dim3(kTile, kTileRows), 0, stream>>>(
      matrices.first, matrices.each, layout_of(matrices, shape), dense, shape, down, tiles);
  return status_of(cudaGetLastError());
}

}  // namespace

Status gather(const ConstMatrices& from, float* dense, const BatchShape& shape,
              cudaStream_t stream) {
  return start_move<true>(from, dense, shape, stream);
}

Status scatter(const float* dense, const Matrices& to, const BatchShape& shape,
               cudaStream_t stream) {
  return start_move<false>(to, dense, shape, stream);
}

}  // namespace kernelbeam::cuda
