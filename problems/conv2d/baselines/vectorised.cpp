// The baseline without a library: one filter tap at a time, added to a row of the output for four
// filters at once, in loops that the compiler vectorises. Rows with a stride are first taken apart.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kStrip, 64, 16, 32, 64);  // pixels of a row at a time

namespace {

constexpr int kFilters = 4;

struct Layer {
  int channels, height, width, filters, kernel_height, kernel_width, stride, padding, out_height,
      out_width;
};

// The pixels of one tap under a strip of windows; zero outside the image.
void take_pixels(const float* row, const Layer& l, int first, int pixels, int s, float* to) {
  const int shift = s - l.padding;
  for (int i = 0; i < pixels; ++i) {
    const int at = (first + i) * l.stride + shift;
    to[i] = at >= 0 && at < l.width ? row[at] : 0;
  }
  for (int i = pixels; i < kStrip; ++i) to[i] = 0;
}

void add_strip(const float* image, const float* const filter[kFilters], const Layer& l, int row,
               int first, int pixels, float sums[kFilters][kStrip]) {
  alignas(64) float taken[kStrip];
  for (int c = 0; c < l.channels; ++c)
    for (int r = 0; r < l.kernel_height; ++r) {
      const int in_row = row * l.stride + r - l.padding;
      if (in_row < 0 || in_row >= l.height) continue;
      const float* const from = image + (c * l.height + in_row) * l.width;
      const int tap = (c * l.kernel_height + r) * l.kernel_width;
      for (int s = 0; s < l.kernel_width; ++s) {
        take_pixels(from, l, first, pixels, s, taken);
        for (int f = 0; f < kFilters; ++f) {
          const float weight = filter[f][tap + s];
#pragma omp simd
          for (int i = 0; i < kStrip; ++i) sums[f][i] += weight * taken[i];
        }
      }
    }
}

// Items are rows of Y for four filters.
void convolve(kbeam::Range items, const float* x, const float* w, float* y, Layer l) {
  const int groups = (l.filters + kFilters - 1) / kFilters;
  const int taps = l.channels * l.kernel_height * l.kernel_width;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const int row = static_cast<int>(item % l.out_height);
    const int group = static_cast<int>(item / l.out_height % groups);
    const std::int64_t image = item / l.out_height / groups;
    const float* filter[kFilters];
    for (int f = 0; f < kFilters; ++f)
      filter[f] =
          w + static_cast<std::int64_t>(std::min(group * kFilters + f, l.filters - 1)) * taps;
    for (int first = 0; first < l.out_width; first += kStrip) {
      const int pixels = std::min<int>(kStrip, l.out_width - first);
      alignas(64) float sums[kFilters][kStrip] = {};
      add_strip(x + image * l.channels * l.height * l.width, filter, l, row, first, pixels, sums);
      for (int f = 0; f < std::min(kFilters, l.filters - group * kFilters); ++f)
        std::copy_n(
            sums[f], pixels,
            y + ((image * l.filters + group * kFilters + f) * l.out_height + row) * l.out_width +
                first);
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
  const std::int64_t groups = (layer.filters + kFilters - 1) / kFilters;
  plan.parallel_for(y.dim(0) * groups * y.dim(2), 0, convolve, x, w, y, layer);
}
