// Family implicit_gemm: the convolution as a product of filters and windows that are never stored:
// each block stages the windows of a tile of pixels tap by tap in shared memory, FP32 throughout.
#include <kbeam/candidate.h>

#include <cstdint>

KBEAM_KNOB(int, kTilePixels, 128, 64, 128);
KBEAM_KNOB(int, kTileFilters, 96, 32, 64, 96);
KBEAM_KNOB(int, kTileTaps, 8, 8, 16);

namespace {

constexpr int kThreads = 256;
constexpr int kLanes = 16;  // threads side by side over pixels; as many over filters
constexpr int kMyPixels = kTilePixels / kLanes;
constexpr int kMyFilters = kTileFilters / kLanes;

struct Layer {
  int channels, height, width, filters, kernel_height, kernel_width, stride, padding, out_height,
      out_width;
  int pixels;  // of the whole batch
  int taps;
};

// The window of one pixel: where its first tap lies, and its place in the image.
struct Window {
  const float* image;
  int row, column;
};

__device__ Window window_of(const float* x, const Layer& l, int pixel) {
  if (pixel >= l.pixels) return {nullptr, 0, 0};
  const int out_image = l.out_height * l.out_width;
  const int place = pixel % out_image;
  return {x + static_cast<std::int64_t>(pixel / out_image) * l.channels * l.height * l.width,
          place / l.out_width * l.stride - l.padding, place % l.out_width * l.stride - l.padding};
}

__device__ float pixel_under(const Layer& l, const Window& window, int tap) {
  const int area = l.kernel_height * l.kernel_width;
  const int c = tap / area, r = tap % area / l.kernel_width, s = tap % area % l.kernel_width;
  const int row = window.row + r, column = window.column + s;
  const bool is_inside = window.image != nullptr && tap < l.taps && row >= 0 && row < l.height &&
                         column >= 0 && column < l.width;
  return is_inside ? window.image[(c * l.height + row) * l.width + column] : 0;
}

__global__ void __launch_bounds__(kThreads)
    convolve(const float* x, const float* w, float* y, Layer l) {
  __shared__ float windows[kTileTaps][kTilePixels];
  __shared__ float weights[kTileTaps][kTileFilters + 1];
  const int first_pixel = blockIdx.x * kTilePixels, first_filter = blockIdx.y * kTileFilters;
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  // A thread stages one pixel for every few taps.
  constexpr int kStep = kThreads / kTilePixels;
  const Window mine = window_of(x, l, first_pixel + static_cast<int>(threadIdx.x) % kTilePixels);
  float sums[kMyFilters][kMyPixels] = {};
  for (int from = 0; from < l.taps; from += kTileTaps) {
    for (int t = threadIdx.x / kTilePixels; t < kTileTaps; t += kStep)
      windows[t][threadIdx.x % kTilePixels] = pixel_under(l, mine, from + t);
    for (int i = threadIdx.x; i < kTileTaps * kTileFilters; i += kThreads) {
      const int f = first_filter + i / kTileTaps, tap = from + i % kTileTaps;
      weights[i % kTileTaps][i / kTileTaps] =
          f < l.filters && tap < l.taps ? w[static_cast<std::int64_t>(f) * l.taps + tap] : 0;
    }
    __syncthreads();  // both tiles are complete
    for (int t = 0; t < kTileTaps; ++t) {
      float taken[kMyPixels];
      for (int p = 0; p < kMyPixels; ++p) taken[p] = windows[t][lane + p * kLanes];
      for (int f = 0; f < kMyFilters; ++f) {
        const float weight = weights[t][group + f * kLanes];
        for (int p = 0; p < kMyPixels; ++p) sums[f][p] += weight * taken[p];
      }
    }
    __syncthreads();  // all have read them
  }
  const int out_image = l.out_height * l.out_width;
  for (int p = 0; p < kMyPixels; ++p) {
    const int pixel = first_pixel + lane + p * kLanes;
    if (pixel >= l.pixels) continue;
    float* const to = y + static_cast<std::int64_t>(pixel / out_image) * l.filters * out_image +
                      pixel % out_image;
    for (int f = 0; f < kMyFilters; ++f) {
      const int filter = first_filter + group + f * kLanes;
      if (filter < l.filters) to[static_cast<std::int64_t>(filter) * out_image] = sums[f][p];
    }
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("X");
  const auto w = args.input<float>("W");
  const auto y = args.output<float>("Y");
  const auto axis = [&](const char* name) { return static_cast<int>(args.axis(name)); };
  const std::int64_t pixels = y.dim(0) * y.dim(2) * y.dim(3);
  if (pixels > 1 << 30) {
    plan.not_supported("more than 2^30 pixels of output");
    return;
  }
  const Layer layer{axis("channels"),
                    axis("height"),
                    axis("width"),
                    axis("filters"),
                    axis("kernel_height"),
                    axis("kernel_width"),
                    axis("stride"),
                    axis("padding"),
                    axis("out_height"),
                    axis("out_width"),
                    static_cast<int>(pixels),
                    static_cast<int>(w.dim(1) * w.dim(2) * w.dim(3))};
  plan.launch(convolve,
              {.grid = {static_cast<unsigned>((pixels + kTilePixels - 1) / kTilePixels),
                        static_cast<unsigned>((layer.filters + kTileFilters - 1) / kTileFilters)},
               .block = kThreads},
              x, w, y, layer);
}
