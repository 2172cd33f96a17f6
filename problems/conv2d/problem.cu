// 2D convolution on the GPU: the inputs of large cases, and the FP64 check of their outputs. The
// rules are those of problem.cpp; README.md has the mathematics. Families without a recipe here are
// made on the host.
#include <kbeam/problem_cuda.h>
#include <kbeam/random_cuda.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace {

constexpr int kThreads = 256;

// ---- inputs ----

enum Kind : int { kNormal, kUniform, kOddInteger, kSmallInteger, kNearlyOne, kHalfZero };

// How the entries of one tensor are drawn. Groups of entries share a scale of 10^0 .. 10^-decades.
struct Recipe {
  int kind;
  int salt;
  std::int64_t group;
  double decades;
};

__device__ double draw(std::uint64_t seed, const Recipe& recipe, std::int64_t i) {
  const std::uint64_t first = kbeam::bits_at(seed, recipe.salt, i, 0);
  const auto normal = [&] { return kbeam::normal_at(seed, recipe.salt, i); };
  switch (recipe.kind) {
    case kUniform:
      return kbeam::uniform_of(first);
    case kOddInteger:
      return (first >> 63 ? 1 : -1) * static_cast<double>(2049 + 2 * (first % 1024));
    case kSmallInteger:
      return static_cast<double>(first % 3) - 1;
    case kNearlyOne:
      return 1 + 1e-3 * normal();
    case kHalfZero:
      return kbeam::bits_at(seed, recipe.salt, i, 2) >> 63 ? 0 : normal();
    default:
      return normal();
  }
}

__global__ void fill(const kbeam::Control* control, float* to, std::int64_t elements,
                     Recipe recipe) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= elements) return;
  double value = draw(control->seed, recipe, i);
  if (recipe.decades > 0)
    value *= exp10(-recipe.decades * kbeam::uniform_of(kbeam::bits_at(control->seed, recipe.salt,
                                                                      i / recipe.group, 3)));
  to[i] = static_cast<float>(value);
}

// Filters that sum to nearly zero. A thread a filter, in order: the same bytes every time.
__global__ void centre(float* w, int filters, int taps) {
  const int f = blockIdx.x * kThreads + threadIdx.x;
  if (f >= filters) return;
  float* const filter = w + static_cast<std::int64_t>(f) * taps;
  double sum = 0;
  for (int t = 0; t < taps; ++t) sum += filter[t];
  for (int t = 0; t < taps; ++t) filter[t] = static_cast<float>(filter[t] - sum / taps);
}

// In two images of three.
__global__ void place_nan(const kbeam::Control* control, float* x, int images,
                          std::int64_t elements) {
  const int b = blockIdx.x * kThreads + threadIdx.x;
  if (b < images && b % 3 != 2)
    x[b * elements + kbeam::bits_at(control->seed, 7, b, 0) % elements] =
        __int_as_float(0x7fc00000);
}

unsigned blocks(std::int64_t elements) {
  return static_cast<unsigned>((elements + kThreads - 1) / kThreads);
}

struct Recipes {
  Recipe x, w;
};

std::optional<Recipes> recipes_of(const std::string& family, std::int64_t image,
                                  std::int64_t filter) {
  const auto both = [&](Kind x, Kind w, double decades = 0) {
    return Recipes{{x, 0, image, decades}, {w, 1, filter, decades}};
  };
  if (family == "dense") return both(kNormal, kNormal);
  if (family == "positive") return both(kUniform, kUniform);
  if (family == "graded") return both(kNormal, kNormal, 9);
  if (family == "exact_integers") return both(kOddInteger, kSmallInteger);
  if (family == "cancelling") return both(kNearlyOne, kNormal);
  if (family == "one_nan") return both(kNormal, kHalfZero);
  return std::nullopt;
}

// ---- check ----

struct Layer {
  int batch, channels, height, width, filters, kernel_height, kernel_width, stride, padding,
      out_height, out_width;

  __host__ __device__ int taps() const { return channels * kernel_height * kernel_width; }
  __host__ __device__ std::int64_t pixels() const {
    return static_cast<std::int64_t>(batch) * out_height * out_width;
  }
};

// Built inside the kernel: an argument holds no device pointers.
struct Figures {
  kbeam::FigureCell* error;
  kbeam::FigureCell* lost;
  kbeam::FigureCell* not_finite;
  bool exactly;
};

constexpr int kTilePixels = 64;
constexpr int kTileFilters = 32;
constexpr int kTileTaps = 16;
constexpr int kMyPixels = 4;
constexpr int kMyFilters = 2;

// The pixel of X under one tap of one window, zero on the padding.
__device__ double pixel_under(const float* x, const Layer& l, std::int64_t pixel, int tap) {
  if (pixel >= l.pixels() || tap >= l.taps()) return 0;
  const int out_image = l.out_height * l.out_width;
  const int image = static_cast<int>(pixel / out_image);
  const int place = static_cast<int>(pixel % out_image);
  const int c = tap / (l.kernel_height * l.kernel_width);
  const int r = tap / l.kernel_width % l.kernel_height;
  const int row = place / l.out_width * l.stride + r - l.padding;
  const int column = place % l.out_width * l.stride + tap % l.kernel_width - l.padding;
  if (row < 0 || row >= l.height || column < 0 || column >= l.width) return 0;
  return x[((static_cast<std::int64_t>(image) * l.channels + c) * l.height + row) * l.width +
           column];
}

__device__ void judge_element(const Figures& figures, const Layer& l, double found, double exact,
                              double absolute, std::uint64_t index) {
  constexpr double kUnitRoundoff = 0x1p-24;
  if (!isfinite(exact)) {
    const bool same = isnan(exact) ? isnan(found) : found == exact;
    if (!same) kbeam::raise_figure(figures.lost, 1, index);
    return;
  }
  if (!isfinite(found)) {
    if (absolute <= FLT_MAX / 2) kbeam::raise_figure(figures.not_finite, 1, index);
    return;
  }
  const double free = figures.exactly ? 0 : (l.taps() + 1) * 0x1p-149;
  const double difference = fmax(fabs(found - exact) - free, 0.0);
  if (difference > 0)
    kbeam::raise_figure(figures.error, difference / (kUnitRoundoff * absolute), index);
}

// 64 windows against 32 filters a block, both staged in FP64; 4 x 2 of them a thread.
__global__ void __launch_bounds__(kThreads)
    judge(const float* x, const float* w, const float* y, Layer l, kbeam::FigureCell* error,
          kbeam::FigureCell* lost, kbeam::FigureCell* not_finite, int exactly) {
  __shared__ double windows[kTileTaps][kTilePixels];
  __shared__ double weights[kTileTaps][kTileFilters];
  const std::int64_t first_pixel = static_cast<std::int64_t>(blockIdx.x) * kTilePixels;
  const int first_filter = blockIdx.y * kTileFilters;
  const int my_pixel = threadIdx.x % (kTilePixels / kMyPixels);
  const int my_filter = threadIdx.x / (kTilePixels / kMyPixels);
  double sum[kMyPixels][kMyFilters] = {};
  double total[kMyPixels][kMyFilters] = {};
  for (int from = 0; from < l.taps(); from += kTileTaps) {
    for (int i = threadIdx.x; i < kTileTaps * kTilePixels; i += kThreads)
      windows[i / kTilePixels][i % kTilePixels] =
          pixel_under(x, l, first_pixel + i % kTilePixels, from + i / kTilePixels);
    for (int i = threadIdx.x; i < kTileTaps * kTileFilters; i += kThreads) {
      const int f = first_filter + i / kTileTaps, tap = from + i % kTileTaps;
      weights[i % kTileTaps][i / kTileTaps] =
          f < l.filters && tap < l.taps() ? w[static_cast<std::int64_t>(f) * l.taps() + tap] : 0;
    }
    __syncthreads();  // both tiles are complete
    for (int t = 0; t < kTileTaps; ++t)
      for (int p = 0; p < kMyPixels; ++p)
        for (int f = 0; f < kMyFilters; ++f) {
          const double pixel = windows[t][my_pixel + p * (kTilePixels / kMyPixels)];
          const double weight = weights[t][my_filter + f * (kTileFilters / kMyFilters)];
          sum[p][f] = fma(pixel, weight, sum[p][f]);
          total[p][f] = fma(fabs(pixel), fabs(weight), total[p][f]);
        }
    __syncthreads();  // all have read them
  }
  const int out_image = l.out_height * l.out_width;
  for (int p = 0; p < kMyPixels; ++p)
    for (int f = 0; f < kMyFilters; ++f) {
      const std::int64_t pixel = first_pixel + my_pixel + p * (kTilePixels / kMyPixels);
      const int filter = first_filter + my_filter + f * (kTileFilters / kMyFilters);
      if (pixel >= l.pixels() || filter >= l.filters) continue;
      const std::uint64_t index =
          (pixel / out_image * l.filters + filter) * out_image + pixel % out_image;
      judge_element({error, lost, not_finite, exactly != 0}, l, y[index], sum[p][f], total[p][f],
                    index);
    }
}

}  // namespace

KBEAM_GENERATE(plan, args) {
  const auto x = args.output<float>("X");
  const auto w = args.output<float>("W");
  const auto control = plan.control(args);
  const std::string family = args.text("family");
  const std::int64_t image = x.dim(1) * x.dim(2) * x.dim(3);
  const std::int64_t taps = w.dim(1) * w.dim(2) * w.dim(3);
  const std::optional<Recipes> recipes = recipes_of(family, image, taps);
  if (!recipes) {
    plan.not_supported("this family is made on the host");
    return;
  }
  const std::int64_t of_x = x.dim(0) * image, of_w = w.dim(0) * taps;
  plan.launch(fill, {.grid = blocks(of_x), .block = kThreads}, control, x, of_x, recipes->x);
  plan.launch(fill, {.grid = blocks(of_w), .block = kThreads}, control, w, of_w, recipes->w);
  if (family == "cancelling")
    plan.launch(centre, {.grid = blocks(w.dim(0)), .block = kThreads}, w,
                static_cast<int>(w.dim(0)), static_cast<int>(taps));
  if (family == "one_nan")
    plan.launch(place_nan, {.grid = blocks(x.dim(0)), .block = kThreads}, control, x,
                static_cast<int>(x.dim(0)), image);
}

KBEAM_CHECK(plan, args) {
  const auto x = args.input<float>("X");
  const auto w = args.input<float>("W");
  const auto y = args.input<float>("Y");
  const std::string family = args.text("family");
  const auto size = [&](const auto& tensor, int axis) {
    return static_cast<int>(tensor.dim(axis));
  };
  const Layer l{size(x, 0),
                size(x, 1),
                size(x, 2),
                size(x, 3),
                size(w, 0),
                size(w, 2),
                size(w, 3),
                static_cast<int>(args.axis("stride")),
                static_cast<int>(args.axis("padding")),
                size(y, 2),
                size(y, 3)};
  const int exactly = family == "exact_integers" || family == "impulse" || family == "zero";
  const std::vector<std::pair<std::string, std::int64_t>> where = {
      {"image", y.dim(0)}, {"filter", y.dim(1)}, {"pixel", y.dim(2) * y.dim(3)}};
  const double limit = 12 + std::sqrt(static_cast<double>(std::min(l.taps(), 1024)));
  const auto error = plan.figure({.name = exactly ? "exact_error" : "element_error",
                                  .unit = "u |X|*|W|",
                                  .limit = exactly ? 0 : limit,
                                  .where = where});
  const auto lost =
      plan.figure({.name = "nan_or_inf_lost", .unit = "", .limit = 0, .where = where});
  const auto not_finite = plan.figure(
      {.name = "non_finite_output", .unit = "", .limit = 0, .where = where, .not_finite = true});
  const unsigned tiles = static_cast<unsigned>((l.pixels() + kTilePixels - 1) / kTilePixels);
  const auto tile_filters = static_cast<unsigned>((l.filters + kTileFilters - 1) / kTileFilters);
  plan.launch(judge, {.grid = {tiles, tile_filters}, .block = kThreads}, x, w, y, l, error, lost,
              not_finite, exactly);
}
