// Inputs and check of the attack corpus's product, on the GPU: the rules of problem.cpp.
#include <kbeam/problem_cuda.h>

#include <cstdint>
#include <string>

namespace {

constexpr int kThreads = 256;
constexpr double kUnitRoundoff = 0x1p-24;
constexpr double kLimit = 16;

struct Shape {
  int m, n, k;
};

__device__ std::uint32_t mix(std::uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdull;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return static_cast<std::uint32_t>(x >> 32);
}

// Mean zero, variance one, no tail beyond 3.5: the sum of four uniform numbers.
__device__ float draw(std::uint64_t seed, std::uint64_t index) {
  float sum = 0;
  for (int i = 0; i < 4; ++i)
    sum +=
        static_cast<float>(mix(seed + 0x9e3779b97f4a7c15ull * (4 * index + i + 1)) >> 8) * 0x1p-24f;
  return (sum - 2) * 1.7320508f;
}

__global__ void fill(const kbeam::Control* control, float* to, std::int64_t elements, int salt,
                     int small_columns) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= elements) return;
  const float scale = small_columns > 0 && i % small_columns % 2 == 1 ? 0x1p-20f : 1;
  to[i] = scale * draw(control->seed * 2 + salt, i);
}

__global__ void place_nan(const kbeam::Control* control, float* a, std::int64_t elements) {
  a[mix(control->seed) % elements] = __int_as_float(0x7fc00000);
}

__global__ void judge(const float* a, const float* b, const float* c, Shape s, const double* unit,
                      kbeam::FigureCell* error, kbeam::FigureCell* lost_nan) {
  const int index = blockIdx.x * kThreads + threadIdx.x;
  if (index >= s.m * s.n) return;
  const float* const row = a + static_cast<std::int64_t>(index / s.n) * s.k;
  const float* const column = b + index % s.n;
  double exact = 0;
  double size = 0;
  for (int i = 0; i < s.k; ++i) {
    const double term = static_cast<double>(row[i]) * column[static_cast<std::int64_t>(i) * s.n];
    exact += term;
    size += fabs(term);
  }
  const double found = c[index];
  if (exact != exact) {
    if (found == found) kbeam::raise_figure(lost_nan, 1, index);
    return;
  }
  if (found != exact) kbeam::raise_figure(error, fabs(found - exact) / (*unit * size), index);
}

unsigned blocks(std::int64_t elements) {
  return static_cast<unsigned>((elements + kThreads - 1) / kThreads);
}

}  // namespace

KBEAM_GENERATE(plan, args) {
  const auto a = args.output<float>("A");
  const auto b = args.output<float>("B");
  const auto control = plan.control(args);
  const std::string family = args.text("family");
  const std::int64_t of_a = a.dim(0) * a.dim(1), of_b = b.dim(0) * b.dim(1);
  const int small = family == "noise_columns" ? static_cast<int>(b.dim(1)) : 0;
  plan.launch(fill, {.grid = blocks(of_a), .block = kThreads}, control, a, of_a, 0, 0);
  plan.launch(fill, {.grid = blocks(of_b), .block = kThreads}, control, b, of_b, 1, small);
  if (family == "one_nan") plan.launch(place_nan, {.grid = 1, .block = 1}, control, a, of_a);
}

KBEAM_CHECK(plan, args) {
  const auto a = args.input<float>("A");
  const auto b = args.input<float>("B");
  const auto c = args.input<float>("C");
  const std::vector<std::pair<std::string, std::int64_t>> where = {{"row", c.dim(0)},
                                                                   {"column", c.dim(1)}};
  const auto error = plan.figure(
      {.name = "element_error", .unit = "u (|A| |B|)", .limit = kLimit, .where = where});
  const auto lost = plan.figure({.name = "lost_nan", .unit = "", .limit = 0, .where = where});
  const Shape s{static_cast<int>(a.dim(0)), static_cast<int>(b.dim(1)), static_cast<int>(a.dim(1))};
  // In a table, as the tables of larger checks: the judge's memory must be out of reach.
  const auto unit = plan.table<double>({kUnitRoundoff});
  plan.launch(judge, {.grid = blocks(c.dim(0) * c.dim(1)), .block = kThreads}, a, b, c, s, unit,
              error, lost);
}
