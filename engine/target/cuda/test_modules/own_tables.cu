// Keeps counts from one call to the next in variables with the names and sizes of nvcc's tables.
#include <kbeam/candidate.h>

__device__ unsigned long long __cudart_i2opi_d[18];
__device__ unsigned __cudart_i2opi_f[6] = {1, 2, 3, 4, 5, 6};
__device__ double __cudart_sin_cos_coeffs[16];

namespace {
__global__ void count(float* y) {
  y[0] = static_cast<float>(++__cudart_i2opi_d[3]);
  y[1] = static_cast<float>(++__cudart_i2opi_f[3]);
  y[2] = static_cast<float>(++__cudart_sin_cos_coeffs[3]);
}
}  // namespace

KBEAM_PLAN(plan, args) {
  plan.launch(count, {}, args.output<float>("y"));
}
