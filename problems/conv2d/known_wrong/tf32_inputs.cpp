// expect: wrong_value
// caught by: element_error except impulse; exact_error on exact_integers, impulse
// Factors rounded to the nearest 11 bits, sums in double: one tensor core product.
#include <kbeam/candidate.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace {

struct Layer {
  int channels, height, width, filters, kernel_height, kernel_width, stride, padding, out_height,
      out_width;
};

// To the nearest number with 11 bits; what is not finite stays.
float narrow(float value) {
  if (!std::isfinite(value)) return value;
  constexpr std::uint32_t kDropped = 13;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t half = (1u << (kDropped - 1)) - 1 + (bits >> kDropped & 1);
  return std::bit_cast<float>((bits + half) & ~((1u << kDropped) - 1));
}

// Items are rows of Y.
void convolve_rows(kbeam::Range items, const float* x, const float* w, float* y, Layer l) {
  for (std::int64_t item = items.begin; item < items.end; ++item) {
    const int row = static_cast<int>(item % l.out_height);
    const std::int64_t image = item / l.out_height / l.filters;
    const float* const filter =
        w + item / l.out_height % l.filters * l.channels * l.kernel_height * l.kernel_width;
    for (int column = 0; column < l.out_width; ++column) {
      double sum = 0;
      for (int c = 0; c < l.channels; ++c)
        for (int r = 0; r < l.kernel_height; ++r)
          for (int s = 0; s < l.kernel_width; ++s) {
            const int in_row = row * l.stride + r - l.padding;
            const int at = column * l.stride + s - l.padding;
            if (in_row < 0 || in_row >= l.height || at < 0 || at >= l.width) continue;
            const float* const from = x + ((image * l.channels + c) * l.height + in_row) * l.width;
            sum += static_cast<double>(narrow(from[at])) *
                   narrow(filter[(c * l.kernel_height + r) * l.kernel_width + s]);
          }
      y[item * l.out_width + column] = static_cast<float>(sum);
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
  plan.parallel_for(y.dim(0) * y.dim(1) * y.dim(2), 0, convolve_rows, x, w, y, layer);
}
