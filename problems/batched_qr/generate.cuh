// Fills the inputs of a case on the GPU at about the speed of memory: a warp a column, every entry
// from the seed, the matrix and its place alone.
#pragma once

#include <kbeam/problem_cuda.h>

#include <cstdint>
#include <string>

#include "recipes.cuh"
#include "reductions.cuh"

namespace batched_qr {

inline constexpr int kFillThreads = 256;
inline constexpr int kColumnsPerBlock = 32;

// The norm of column j as it would be unscaled, the same in every lane.
static __device__ double warp_norm(const Recipe& recipe, const Column& column, int lane) {
  double squares = 0;
  for (int quad = lane; 4 * quad < recipe.m; quad += kWarp) {
    float four[4];
    make_quad(recipe, column, quad, four);
    for (int part = 0; part < 4; ++part)
      if (4 * quad + part < recipe.m) squares += static_cast<double>(four[part]) * four[part];
  }
  return sqrt(warp_sum(squares));
}

static __device__ void store_quad(float* column, int m, int quad, const float* four) {
  if (m % 4 == 0) {
    reinterpret_cast<float4*>(column)[quad] = {four[0], four[1], four[2], four[3]};
    return;
  }
  for (int part = 0; part < 4; ++part)
    if (4 * quad + part < m) column[4 * quad + part] = four[part];
}

static __global__ void __launch_bounds__(kFillThreads)
    fill_columns(float* a, const kbeam::Control* control, Kind family, BatchShape shape) {
  __shared__ Recipe recipe;
  const int blocks_per_matrix = (shape.n + kColumnsPerBlock - 1) / kColumnsPerBlock;
  const std::int64_t matrix = blockIdx.x / blocks_per_matrix;
  const int first = static_cast<int>(blockIdx.x % blocks_per_matrix) * kColumnsPerBlock;
  if (threadIdx.x == 0) recipe = make_recipe(family, shape, matrix, control->seed);
  __syncthreads();  // all warps wait for the recipe

  const int lane = threadIdx.x % kWarp;
  const int end = first + kColumnsPerBlock < shape.n ? first + kColumnsPerBlock : shape.n;
  for (int j = first + static_cast<int>(threadIdx.x) / kWarp; j < end; j += kFillThreads / kWarp) {
    Column column = make_column(recipe, j);
    if (recipe.kind == Kind::huge) {
      const double norm = warp_norm(recipe, column, lane);
      if (norm > 0) column.scale = huge_norm(recipe, j) / norm;
    }
    float* to = a + (matrix * shape.n + j) * shape.m;
    for (int quad = lane; 4 * quad < shape.m; quad += kWarp) {
      float four[4];
      make_quad(recipe, column, quad, four);
      store_quad(to, shape.m, quad, four);
    }
  }
}

// The plan is a template so that the tests can run it without a GPU.
template <typename Plan, typename Args>
void describe_generation(Plan& plan, const Args& args) {
  const Kind family = find_kind(args.text("family"));
  if (family == Kind::none) {
    plan.not_supported("problem.cu has no family '" + args.text("family") + "'");
    return;
  }
  const BatchShape shape{args.axis("batch"), static_cast<int>(args.axis("m")),
                         static_cast<int>(args.axis("n"))};
  const std::int64_t blocks = (shape.n + kColumnsPerBlock - 1) / kColumnsPerBlock;
  plan.launch(fill_columns, {.grid = shape.batch * blocks, .block = kFillThreads},
              args.template output<float>("A"), plan.control(args), family, shape);
}

}  // namespace batched_qr
