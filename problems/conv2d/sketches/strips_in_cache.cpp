// Family strips_in_cache: the windows of a strip of pixels are copied once into a buffer that stays
// in the cache, taps by pixels, and multiplied by all filters, a few of them in registers at a
// time.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kStrip, 32, 16, 32, 48);  // pixels
KBEAM_KNOB(int, kFilters, 4, 4, 6, 8);    // in registers

namespace {

struct Layer {
  int channels, height, width, filters, kernel_height, kernel_width, stride, padding, out_height,
      out_width;
};

void take_windows(const float* image, const Layer& l, int row, int first, int pixels, float* to) {
  for (int c = 0; c < l.channels; ++c)
    for (int r = 0; r < l.kernel_height; ++r) {
      const int in_row = row * l.stride + r - l.padding;
      const bool is_inside = in_row >= 0 && in_row < l.height;
      const float* const from = image + (c * l.height + (is_inside ? in_row : 0)) * l.width;
      for (int s = 0; s < l.kernel_width; ++s, to += kStrip)
        for (int i = 0; i < kStrip; ++i) {
          const int at = (first + i) * l.stride + s - l.padding;
          to[i] = is_inside && i < pixels && at >= 0 && at < l.width ? from[at] : 0;
        }
    }
}

void multiply(const float* const filter[kFilters], const float* windows, int taps,
              float sums[kFilters][kStrip]) {
  float inner[kFilters][kStrip] = {};
  for (int t = 0; t < taps; ++t)
    for (int f = 0; f < kFilters; ++f) {
      const float weight = filter[f][t];
#pragma omp simd
      for (int i = 0; i < kStrip; ++i) inner[f][i] += weight * windows[t * kStrip + i];
    }
  for (int f = 0; f < kFilters; ++f) std::copy_n(inner[f], kStrip, sums[f]);
}

// Items are rows of Y.
void convolve(kbeam::Range items, const float* x, const float* w, float* y, float* windows,
              Layer l) {
  const int taps = l.channels * l.kernel_height * l.kernel_width;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const int row = static_cast<int>(item % l.out_height);
    const std::int64_t image = item / l.out_height;
    for (int first = 0; first < l.out_width; first += kStrip) {
      const int pixels = std::min<int>(kStrip, l.out_width - first);
      take_windows(x + image * l.channels * l.height * l.width, l, row, first, pixels, windows);
      for (int f = 0; f < l.filters; f += kFilters) {
        const float* filter[kFilters];
        for (int i = 0; i < kFilters; ++i)
          filter[i] = w + static_cast<std::int64_t>(std::min(f + i, l.filters - 1)) * taps;
        alignas(64) float sums[kFilters][kStrip];
        multiply(filter, windows, taps, sums);
        for (int i = 0; i < std::min<int>(kFilters, l.filters - f); ++i)
          std::copy_n(sums[i], pixels,
                      y + ((image * l.filters + f + i) * l.out_height + row) * l.out_width + first);
      }
    }
  }
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
  const auto windows = plan.worker_scratch<float>(w.dim(1) * w.dim(2) * w.dim(3) * kStrip);
  plan.parallel_for(y.dim(0) * y.dim(2), 0, convolve, x, w, y, windows, layer);
}
