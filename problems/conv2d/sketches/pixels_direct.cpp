// Family pixels_direct: no copies; a few rows of filters are kept in registers for a strip of
// pixels of the output, and every tap reads its pixels where they lie, with the border handled
// apart.
#include <kbeam/candidate.h>

#include <algorithm>
#include <cstdint>

KBEAM_KNOB(int, kStrip, 16, 8, 16);      // pixels
KBEAM_KNOB(int, kFilters, 8, 4, 8, 12);  // in registers

namespace {

struct Layer {
  int channels, height, width, filters, kernel_height, kernel_width, stride, padding, out_height,
      out_width;
};

struct Strip {
  const float* image;
  const float* const* filter;
  int row, first, pixels;
};

// `kInside`: every pixel of the strip lies inside the row.
template <bool kInside>
void add_row(const float* from, const Layer& l, const Strip& strip, int tap,
             float sums[kFilters][kStrip]) {
  for (int s = 0; s < l.kernel_width; ++s) {
    float taken[kStrip];
    const int begin = strip.first * l.stride + s - l.padding;
    for (int i = 0; i < kStrip; ++i) {
      const int at = begin + i * l.stride;
      taken[i] = kInside || (i < strip.pixels && at >= 0 && at < l.width) ? from[at] : 0;
    }
    for (int f = 0; f < kFilters; ++f) {
      const float weight = strip.filter[f][tap + s];
#pragma omp simd
      for (int i = 0; i < kStrip; ++i) sums[f][i] += weight * taken[i];
    }
  }
}

void add_strip(const Layer& l, const Strip& strip, float sums[kFilters][kStrip]) {
  const int begin = strip.first * l.stride - l.padding;
  const int end = begin + (kStrip - 1) * l.stride + l.kernel_width;
  const bool is_inside = begin >= 0 && end <= l.width && strip.pixels == kStrip;
  for (int c = 0; c < l.channels; ++c)
    for (int r = 0; r < l.kernel_height; ++r) {
      const int in_row = strip.row * l.stride + r - l.padding;
      if (in_row < 0 || in_row >= l.height) continue;
      const float* const from = strip.image + (c * l.height + in_row) * l.width;
      const int tap = (c * l.kernel_height + r) * l.kernel_width;
      if (is_inside)
        add_row<true>(from, l, strip, tap, sums);
      else
        add_row<false>(from, l, strip, tap, sums);
    }
}

// Items are rows of Y for a group of filters.
void convolve(kbeam::Range items, const float* x, const float* w, float* y, Layer l) {
  const int groups = (l.filters + kFilters - 1) / kFilters;
  const int taps = l.channels * l.kernel_height * l.kernel_width;
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const int row = static_cast<int>(item % l.out_height);
    const int first_filter = static_cast<int>(item / l.out_height % groups) * kFilters;
    const std::int64_t image = item / l.out_height / groups;
    const float* filter[kFilters];
    for (int f = 0; f < kFilters; ++f)
      filter[f] = w + static_cast<std::int64_t>(std::min(first_filter + f, l.filters - 1)) * taps;
    for (int first = 0; first < l.out_width; first += kStrip) {
      const int pixels = std::min<int>(kStrip, l.out_width - first);
      float sums[kFilters][kStrip] = {};
      add_strip(l, {x + image * l.channels * l.height * l.width, filter, row, first, pixels}, sums);
      for (int f = 0; f < std::min<int>(kFilters, l.filters - first_filter); ++f)
        std::copy_n(
            sums[f], pixels,
            y + ((image * l.filters + first_filter + f) * l.out_height + row) * l.out_width +
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
