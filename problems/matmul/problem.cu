// Matrix product on the GPU: the inputs of large cases, and the FP64 check of their outputs. The
// rules are those of problem.cpp; README.md has the mathematics. Families without a recipe here are
// made and judged on the host.
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

enum Kind : int { kNormal, kUniform, kOddInteger, kSmallInteger, kHalfZero };
enum ScaledBy : int { kNothing, kRow, kColumn };

// How the entries of one tensor are drawn. With a scale, every row or column of every matrix is
// scaled by 10^0 .. 10^-decades.
struct Recipe {
  int kind;
  int salt;
  int scaled_by;
  int unused;  // an argument of a kernel has no padding
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
    case kHalfZero:
      return kbeam::bits_at(seed, recipe.salt, i, 2) >> 63 ? 0 : normal();
    default:
      return normal();
  }
}

__global__ void fill(const kbeam::Control* control, float* to, std::int64_t elements, int rows,
                     int columns, Recipe recipe) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= elements) return;
  double value = draw(control->seed, recipe, i);
  if (recipe.scaled_by != kNothing) {
    const std::int64_t group =
        recipe.scaled_by == kRow ? i / columns : i / columns / rows * columns + i % columns;
    value *= exp10(-recipe.decades *
                   kbeam::uniform_of(kbeam::bits_at(control->seed, recipe.salt, group, 3)));
  }
  to[i] = static_cast<float>(value);
}

// In two matrices of three.
__global__ void place_nan(const kbeam::Control* control, float* a, int matrices,
                          std::int64_t elements) {
  const int index = blockIdx.x * kThreads + threadIdx.x;
  if (index < matrices && index % 3 != 2)
    a[index * elements + kbeam::bits_at(control->seed, 7, index, 0) % elements] =
        __int_as_float(0x7fc00000);
}

unsigned blocks(std::int64_t elements) {
  return static_cast<unsigned>((elements + kThreads - 1) / kThreads);
}

struct Recipes {
  Recipe a, b;
};

std::optional<Recipes> recipes_of(const std::string& family) {
  const auto both = [](Kind a, Kind b) {
    return Recipes{{a, 0, kNothing, 0, 0}, {b, 1, kNothing, 0, 0}};
  };
  if (family == "dense") return both(kNormal, kNormal);
  if (family == "positive") return both(kUniform, kUniform);
  if (family == "graded") return Recipes{{kNormal, 0, kRow, 0, 12}, {kNormal, 1, kColumn, 0, 12}};
  if (family == "exact_integers") return both(kOddInteger, kSmallInteger);
  if (family == "one_nan") return both(kNormal, kHalfZero);
  return std::nullopt;
}

// ---- check ----

struct Product {
  int m, n, k;
};

struct Figures {
  kbeam::FigureCell* error;
  kbeam::FigureCell* lost;
  kbeam::FigureCell* not_finite;
  bool exactly;
};

__device__ void judge_element(const Figures& figures, int terms, double found, double exact,
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
  const double free = figures.exactly ? 0 : (terms + 1) * 0x1p-149;
  const double difference = fmax(fabs(found - exact) - free, 0.0);
  if (difference > 0)
    kbeam::raise_figure(figures.error, difference / (kUnitRoundoff * absolute), index);
}

constexpr int kTile = 64;       // rows and columns of C a block
constexpr int kTileTerms = 16;  // staged at a time
constexpr int kMine = 4;        // rows and columns a thread

// Both factors are staged in FP64; blockIdx.z is the product of the batch.
__global__ void __launch_bounds__(kThreads)
    judge(const float* a, const float* b, const float* c, Product s, kbeam::FigureCell* error,
          kbeam::FigureCell* lost, kbeam::FigureCell* not_finite, int exactly) {
  __shared__ double of_a[kTileTerms][kTile + 1];
  __shared__ double of_b[kTileTerms][kTile];
  constexpr int kLanes = kTile / kMine;
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  const int lane = threadIdx.x % kLanes, group = threadIdx.x / kLanes;
  const float* const my_a = a + static_cast<std::int64_t>(blockIdx.z) * s.m * s.k;
  const float* const my_b = b + static_cast<std::int64_t>(blockIdx.z) * s.k * s.n;
  double sum[kMine][kMine] = {};
  double total[kMine][kMine] = {};
  for (int from = 0; from < s.k; from += kTileTerms) {
    for (int i = threadIdx.x; i < kTile * kTileTerms; i += kThreads) {
      const int row = first_row + i / kTileTerms, term = from + i % kTileTerms;
      of_a[i % kTileTerms][i / kTileTerms] =
          row < s.m && term < s.k ? my_a[static_cast<std::int64_t>(row) * s.k + term] : 0;
      const int column = first_column + i % kTile, of_column = from + i / kTile;
      of_b[i / kTile][i % kTile] = column < s.n && of_column < s.k
                                       ? my_b[static_cast<std::int64_t>(of_column) * s.n + column]
                                       : 0;
    }
    __syncthreads();  // both tiles are complete
    for (int t = 0; t < kTileTerms; ++t)
      for (int i = 0; i < kMine; ++i)
        for (int j = 0; j < kMine; ++j) {
          const double x = of_a[t][group + i * kLanes], y = of_b[t][lane + j * kLanes];
          sum[i][j] = fma(x, y, sum[i][j]);
          total[i][j] = fma(fabs(x), fabs(y), total[i][j]);
        }
    __syncthreads();  // all have read them
  }
  for (int i = 0; i < kMine; ++i)
    for (int j = 0; j < kMine; ++j) {
      const int row = first_row + group + i * kLanes, column = first_column + lane + j * kLanes;
      if (row >= s.m || column >= s.n) continue;
      const std::uint64_t index =
          (static_cast<std::uint64_t>(blockIdx.z) * s.m + row) * s.n + column;
      judge_element({error, lost, not_finite, exactly != 0}, s.k, c[index], sum[i][j], total[i][j],
                    index);
    }
}

constexpr std::int64_t kMostGrid = 65'535;

}  // namespace

KBEAM_GENERATE(plan, args) {
  const auto a = args.output<float>("A");
  const auto b = args.output<float>("B");
  const auto control = plan.control(args);
  const std::string family = args.text("family");
  const std::optional<Recipes> recipes = recipes_of(family);
  if (!recipes) {
    plan.not_supported("this family is made on the host");
    return;
  }
  const auto fill_one = [&](const auto& tensor, const Recipe& recipe) {
    const std::int64_t elements = tensor.dim(0) * tensor.dim(1) * tensor.dim(2);
    plan.launch(fill, {.grid = blocks(elements), .block = kThreads}, control, tensor, elements,
                static_cast<int>(tensor.dim(1)), static_cast<int>(tensor.dim(2)), recipe);
  };
  fill_one(a, recipes->a);
  fill_one(b, recipes->b);
  if (family == "one_nan")
    plan.launch(place_nan, {.grid = blocks(a.dim(0)), .block = kThreads}, control, a,
                static_cast<int>(a.dim(0)), a.dim(1) * a.dim(2));
}

KBEAM_CHECK(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.input<float>("C");
  const std::string family = args.text("family");
  const Product s{static_cast<int>(c.dim(1)), static_cast<int>(c.dim(2)),
                  static_cast<int>(a.dim(2))};
  const std::int64_t tiles = (s.m + kTile - 1) / kTile;
  if (!recipes_of(family) || c.dim(0) > kMostGrid || tiles > kMostGrid) {
    plan.not_supported("this family, or this many products, is judged on the host");
    return;
  }
  const int exactly = family == "exact_integers";
  const std::vector<std::pair<std::string, std::int64_t>> where = {
      {"product", c.dim(0)}, {"row", c.dim(1)}, {"column", c.dim(2)}};
  const double limit = 12 + std::sqrt(static_cast<double>(std::min(s.k, 1024)));
  const auto error = plan.figure({.name = exactly ? "exact_error" : "element_error",
                                  .unit = "u |A||B|",
                                  .limit = exactly ? 0 : limit,
                                  .where = where});
  const auto lost =
      plan.figure({.name = "nan_or_inf_lost", .unit = "", .limit = 0, .where = where});
  const auto not_finite = plan.figure(
      {.name = "non_finite_output", .unit = "", .limit = 0, .where = where, .not_finite = true});
  plan.launch(judge,
              {.grid = {static_cast<unsigned>((s.n + kTile - 1) / kTile),
                        static_cast<unsigned>(tiles), static_cast<unsigned>(c.dim(0))},
               .block = kThreads},
              a, b, c, s, error, lost, not_finite, exactly);
}
