// The definition: a thread an element, FP32 sums in order of the taps.
#include <kbeam/candidate.h>

#include <cstdint>

namespace {

constexpr int kThreads = 256;

struct Layer {
  int channels, height, width, filters, kernel_height, kernel_width, stride, padding, out_height,
      out_width;
};

// A thread an element of Y.
__global__ void convolve(const float* x, const float* w, float* y, std::int64_t elements, Layer l) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= elements) return;
  const std::int64_t pixels = static_cast<std::int64_t>(l.out_height) * l.out_width;
  const int first_row = static_cast<int>(i % pixels) / l.out_width * l.stride - l.padding;
  const int first_column = static_cast<int>(i % pixels) % l.out_width * l.stride - l.padding;
  const float* const image = x + i / pixels / l.filters * l.channels * l.height * l.width;
  const float* const filter =
      w + i / pixels % l.filters * l.channels * l.kernel_height * l.kernel_width;
  float sum = 0;
  for (int c = 0; c < l.channels; ++c)
    for (int r = 0; r < l.kernel_height; ++r) {
      const int row = first_row + r;
      if (row < 0 || row >= l.height) continue;
      const float* const from = image + (static_cast<std::int64_t>(c) * l.height + row) * l.width;
      for (int s = 0; s < l.kernel_width; ++s) {
        const int at = first_column + s;
        if (at < 0 || at >= l.width) continue;
        const int tap = (c * l.kernel_height + r) * l.kernel_width + s;
        sum += from[at] * filter[tap];
      }
    }
  y[i] = static_cast<float>(sum);
}

}  // namespace

KBEAM_PLAN(plan, args) {
  const auto x = args.input<float>("X");
  const auto w = args.input<float>("W");
  const auto y = args.output<float>("Y");
  const auto axis = [&](const char* name) { return static_cast<int>(args.axis(name)); };
  const Layer layer{axis("channels"),      axis("height"),       axis("width"),  axis("filters"),
                    axis("kernel_height"), axis("kernel_width"), axis("stride"), axis("padding"),
                    axis("out_height"),    axis("out_width")};
  const std::int64_t elements = y.dim(0) * y.dim(1) * y.dim(2) * y.dim(3);
  plan.launch(
      convolve,
      {.grid = static_cast<unsigned>((elements + kThreads - 1) / kThreads), .block = kThreads}, x,
      w, y, elements, layer);
}
