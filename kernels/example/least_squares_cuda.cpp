// The same fits on a GPU, in one call: a parabola to each of 1000 noisy series. Without a GPU it
// says so and exits with 77.
#include <cuda_runtime_api.h>
#include <kernelbeam/cuda/qr.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace {

constexpr int kSeries = 1000;
constexpr int kPoints = 40;
constexpr int kTerms = 3;
constexpr double kTruth[kTerms] = {1.5, -2.0, 0.75};
constexpr int kNoGpu = 77;

bool succeeded(cudaError_t error, const char* what) {
  if (error != cudaSuccess) std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  return error == cudaSuccess;
}

}  // namespace

int main() {
  const auto device = kernelbeam::cuda::Device::make(0);
  if (!device) {
    std::fprintf(stderr, "no GPU that kernelbeam has kernels for\n");
    return kNoGpu;
  }
  std::vector<float> a(kSeries * kPoints * kTerms), b(kSeries * kPoints), x(kSeries * kTerms);
  std::mt19937 generator(1);
  std::normal_distribution<double> noise(0, 0.01);
  for (int s = 0; s < kSeries; ++s)
    for (int i = 0; i < kPoints; ++i) {
      const double t = -1 + 2.0 * (i + noise(generator)) / (kPoints - 1);
      double power = 1, y = noise(generator);
      for (int j = 0; j < kTerms; ++j, power *= t) {
        a[(s * kTerms + j) * kPoints + i] = static_cast<float>(power);
        y += kTruth[j] * power;
      }
      b[s * kPoints + i] = static_cast<float>(y);
    }

  float *device_a = nullptr, *device_b = nullptr, *device_x = nullptr;
  void* workspace = nullptr;
  kernelbeam::cuda::QrSolve call{.batch = kSeries, .m = kPoints, .n = kTerms, .p = 1};
  std::size_t bytes = 0;
  kernelbeam::Status status = kernelbeam::cuda::qr_solve_workspace_bytes(call, *device, &bytes);
  if (status != kernelbeam::Status::ok ||
      !succeeded(cudaMalloc(reinterpret_cast<void**>(&device_a), a.size() * 4), "cudaMalloc") ||
      !succeeded(cudaMalloc(reinterpret_cast<void**>(&device_b), b.size() * 4), "cudaMalloc") ||
      !succeeded(cudaMalloc(reinterpret_cast<void**>(&device_x), x.size() * 4), "cudaMalloc") ||
      !succeeded(cudaMalloc(&workspace, bytes), "cudaMalloc"))
    return 1;
  cudaStream_t stream = nullptr;
  if (!succeeded(cudaStreamCreate(&stream), "cudaStreamCreate")) return 1;
  cudaMemcpyAsync(device_a, a.data(), a.size() * 4, cudaMemcpyHostToDevice, stream);
  cudaMemcpyAsync(device_b, b.data(), b.size() * 4, cudaMemcpyHostToDevice, stream);
  call.a.first = device_a;
  call.b.first = device_b;
  call.x.first = device_x;
  status = kernelbeam::cuda::qr_solve(call, {workspace, bytes}, *device, stream);
  cudaMemcpyAsync(x.data(), device_x, x.size() * 4, cudaMemcpyDeviceToHost, stream);
  const bool is_done = succeeded(cudaStreamSynchronize(stream), "qr_solve");
  if (status != kernelbeam::Status::ok || !is_done) {
    std::fprintf(stderr, "qr_solve: %s\n", kernelbeam::describe(status));
    return 1;
  }

  double worst = 0;
  for (int s = 0; s < kSeries; ++s)
    for (int j = 0; j < kTerms; ++j)
      worst = std::max(worst, std::fabs(x[static_cast<std::size_t>(s * kTerms + j)] - kTruth[j]));
  std::printf("%d fits, largest error of a coefficient: %.4f\n", kSeries, worst);
  for (void* memory : {static_cast<void*>(device_a), static_cast<void*>(device_b),
                       static_cast<void*>(device_x), workspace})
    cudaFree(memory);
  cudaStreamDestroy(stream);
  return worst < 0.05 ? 0 : 1;
}
