// Family register_tiles: tiles of both factors in shared memory, an 8 x 8 tile of C in the
// registers of each thread, FP32 throughout. What a first course on CUDA ends with: a start, not a
// finish.
#include <kbeam/candidate.h>

#include <cstdint>

KBEAM_KNOB(int, kTileRows, 128, 64, 128);
KBEAM_KNOB(int, kTileColumns, 128, 64, 128);
KBEAM_KNOB(int, kTileTerms, 8, 8, 16);

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 16;
constexpr int kMyRows = kTileRows / kLanes;
constexpr int kMyColumns = kTileColumns / kLanes;
constexpr int kPart = 1024;  // terms that one sum may take: longer ones drift

struct Product {
  int m, n, k;
};

__global__ void __launch_bounds__(kThreads)
    multiply(const float* a, const float* b, float* c, Product s) {
  __shared__ float of_a[kTileTerms][kTileRows + 1];
  __shared__ float of_b[kTileTerms][kTileColumns];
  const int first_row = blockIdx.y * kTileRows, first_column = blockIdx.x * kTileColumns;
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const float* const my_a = a + static_cast<std::int64_t>(blockIdx.z) * s.m * s.k;
  const float* const my_b = b + static_cast<std::int64_t>(blockIdx.z) * s.k * s.n;
  float* const my_c = c + static_cast<std::int64_t>(blockIdx.z) * s.m * s.n;
  float sums[kMyRows][kMyColumns] = {};
  float part[kMyRows][kMyColumns] = {};
  for (int from = 0; from < s.k; from += kTileTerms) {
    for (int i = threadIdx.x; i < kTileRows * kTileTerms; i += kThreads) {
      const int row = first_row + i / kTileTerms, term = from + i % kTileTerms;
      of_a[i % kTileTerms][i / kTileTerms] =
          row < s.m && term < s.k ? my_a[static_cast<std::int64_t>(row) * s.k + term] : 0;
    }
    for (int i = threadIdx.x; i < kTileColumns * kTileTerms; i += kThreads) {
      const int column = first_column + i % kTileColumns, term = from + i / kTileColumns;
      of_b[i / kTileColumns][i % kTileColumns] =
          column < s.n && term < s.k ? my_b[static_cast<std::int64_t>(term) * s.n + column] : 0;
    }
    __syncthreads();  // both tiles are complete
    for (int t = 0; t < kTileTerms; ++t) {
      float taken[kMyColumns];
      for (int j = 0; j < kMyColumns; ++j) taken[j] = of_b[t][lane + j * kLanes];
      for (int i = 0; i < kMyRows; ++i) {
        const float value = of_a[t][group + i * kLanes];
        for (int j = 0; j < kMyColumns; ++j) part[i][j] += value * taken[j];
      }
    }
    __syncthreads();  // all have read them
    if ((from + kTileTerms) % kPart == 0 || from + kTileTerms >= s.k)
      for (int i = 0; i < kMyRows; ++i)
        for (int j = 0; j < kMyColumns; ++j) {
          sums[i][j] += part[i][j];
          part[i][j] = 0;
        }
  }
  for (int i = 0; i < kMyRows; ++i)
    for (int j = 0; j < kMyColumns; ++j) {
      const int row = first_row + group + i * kLanes, column = first_column + lane + j * kLanes;
      if (row < s.m && column < s.n)
        my_c[static_cast<std::int64_t>(row) * s.n + column] = sums[i][j];
    }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.output<float>("C");
  const Product product{static_cast<int>(c.dim(1)), static_cast<int>(c.dim(2)),
                        static_cast<int>(a.dim(2))};
  constexpr std::int64_t kMostGrid = 65'535;
  const std::int64_t rows = (product.m + kTileRows - 1) / kTileRows;
  if (c.dim(0) > kMostGrid || rows > kMostGrid) {
    plan.not_supported("more products, or rows of tiles, than a grid has");
    return;
  }
  plan.launch(multiply,
              {.grid = {static_cast<unsigned>((product.n + kTileColumns - 1) / kTileColumns),
                        static_cast<unsigned>(rows), static_cast<unsigned>(c.dim(0))},
               .block = kThreads},
              a, b, c, product);
}
