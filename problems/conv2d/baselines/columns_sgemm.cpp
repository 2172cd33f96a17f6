// What a framework does without a convolution library: the windows of an image are copied into a
// matrix, taps by pixels, which OpenBLAS's SGEMM multiplies by the filters. One image an item.
#include <kbeam/candidate.h>

#include <cstdint>

extern "C" {
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
[[gnu::weak]] char* openblas_get_corename();
[[gnu::weak]] void openblas_set_num_threads(int threads);
}

namespace {

constexpr int kRowMajor = 101, kAsIs = 111;

struct Layer {
  int channels, height, width, filters, kernel_height, kernel_width, stride, padding, out_height,
      out_width;
};

void take_windows(const float* image, const Layer& l, float* to) {
  for (int c = 0; c < l.channels; ++c)
    for (int r = 0; r < l.kernel_height; ++r)
      for (int s = 0; s < l.kernel_width; ++s)
        for (int y = 0; y < l.out_height; ++y, to += l.out_width) {
          const int in_row = y * l.stride + r - l.padding;
          const bool is_inside = in_row >= 0 && in_row < l.height;
          const float* const row = image + (c * l.height + (is_inside ? in_row : 0)) * l.width;
          for (int x = 0; x < l.out_width; ++x) {
            const int at = x * l.stride + s - l.padding;
            to[x] = is_inside && at >= 0 && at < l.width ? row[at] : 0;
          }
        }
}

void convolve(kbeam::Range images, const float* x, const float* w, float* y, float* windows,
              Layer l) {
  const int taps = l.channels * l.kernel_height * l.kernel_width;
  const int pixels = l.out_height * l.out_width;
  for (std::int64_t image = images.begin; image < images.end; ++image) {
    take_windows(x + image * l.channels * l.height * l.width, l, windows);
    cblas_sgemm(kRowMajor, kAsIs, kAsIs, l.filters, pixels, taps, 1, w, taps, windows, pixels, 0,
                y + image * l.filters * pixels, pixels);
  }
}

}  // namespace

KBEAM_PLAN(plan, args) {
  if (!openblas_get_corename || !openblas_set_num_threads) {
    plan.not_supported("the BLAS that is linked here is not OpenBLAS; install libopenblas-dev");
    return;
  }
  openblas_set_num_threads(1);
  const auto x = args.input<float>("X");
  const auto w = args.input<float>("W");
  const auto y = args.output<float>("Y");
  const auto axis = [&](const char* name) { return static_cast<int>(args.axis(name)); };
  const Layer layer{axis("channels"),      axis("height"),       axis("width"),  axis("filters"),
                    axis("kernel_height"), axis("kernel_width"), axis("stride"), axis("padding"),
                    axis("out_height"),    axis("out_width")};
  const std::int64_t taps = w.dim(1) * w.dim(2) * w.dim(3);
  const auto windows = plan.worker_scratch<float>(taps * y.dim(2) * y.dim(3));
  plan.note("core", openblas_get_corename());
  plan.parallel_for(y.dim(0), 0, convolve, x, w, y, windows, layer);
}
