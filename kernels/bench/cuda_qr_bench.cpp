// Numbers for people, not a test: geqrf of the GPU library, call by call on a stream, inputs of
// independent normals, the L2 cache flushed before each call. Claims come from campaigns.
//
//   kernelbeam_cuda_qr_bench 640x512x512 1x37x90 ...     these shapes, batch x m x n
//   kernelbeam_cuda_qr_bench --squares 1,8,60,640 64     every n up to 64 for these batches
//
// A line a shape, separated by tabs: batch, m, n, median and least ms, TFLOP/s, host us a call,
// row.
#include <cuda_runtime_api.h>
#include <kernelbeam/cuda/qr.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

namespace cuda = kernelbeam::cuda;
using kernelbeam::Status;

constexpr int kCalls = 9;
constexpr std::size_t kFlushBytes = std::size_t{256} << 20;

void must(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "kernelbeam_cuda_qr_bench: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(3);
}

class Memory {
 public:
  explicit Memory(std::size_t bytes) {
    must(cudaMalloc(&at_, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { cudaFree(at_); }
  float* floats() const { return static_cast<float*>(at_); }
  void* get() const { return at_; }

 private:
  void* at_ = nullptr;
};

struct Shape {
  std::int64_t batch, m, n;
};

double flops_of(const Shape& shape) {
  const auto m = static_cast<double>(shape.m), n = static_cast<double>(shape.n);
  const double k = std::min(m, n);
  return static_cast<double>(shape.batch) * (2 * m * n * k - (m + n) * k * k + 2 * k * k * k / 3);
}

// A block of normals, again and again: times do not depend on which.
void fill(float* to, std::size_t count) {
  static const std::vector<float> block = [] {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> values(1 << 22);
    for (float& x : values) x = normal(random);
    return values;
  }();
  for (std::size_t i = 0; i < count; i += block.size())
    must(cudaMemcpy(to + i, block.data(), std::min(block.size(), count - i) * sizeof(float),
                    cudaMemcpyDefault),
         "copy inputs");
}

void time_shape(const Shape& shape, cuda::Device& device, cudaStream_t stream,
                const Memory& flush) {
  const auto count = static_cast<std::size_t>(shape.batch * shape.m * shape.n);
  const Memory a(count * 4), h(count * 4),
      tau(static_cast<std::size_t>(shape.batch * std::min(shape.m, shape.n)) * 4);
  fill(a.floats(), count);
  const cuda::Geqrf call{.batch = shape.batch,
                         .m = shape.m,
                         .n = shape.n,
                         .a = {.first = a.floats()},
                         .h = {.first = h.floats()},
                         .tau = tau.floats()};
  std::size_t bytes = 0;
  Status status = cuda::geqrf_workspace_bytes(call, device, &bytes);
  const Memory workspace(bytes);
  cudaEvent_t begin = nullptr, end = nullptr;
  must(cudaEventCreate(&begin), "cudaEventCreate");
  must(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> times, host;
  for (int i = 0; i <= kCalls && status == Status::ok; ++i) {
    must(cudaMemsetAsync(flush.get(), i, kFlushBytes, stream), "flush");
    must(cudaStreamSynchronize(stream), "flush");
    must(cudaEventRecord(begin, stream), "cudaEventRecord");
    const auto before = std::chrono::steady_clock::now();
    status = cuda::geqrf(call, {workspace.get(), bytes}, device, stream);
    const std::chrono::duration<double, std::micro> took =
        std::chrono::steady_clock::now() - before;
    must(cudaEventRecord(end, stream), "cudaEventRecord");
    must(cudaStreamSynchronize(stream), "geqrf");
    float ms = 0;
    must(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (i == 0) continue;  // loads kernels
    times.push_back(ms);
    host.push_back(took.count());
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  if (status != Status::ok) {
    std::printf("%lld\t%lld\t%lld\t%s\n", static_cast<long long>(shape.batch),
                static_cast<long long>(shape.m), static_cast<long long>(shape.n),
                kernelbeam::describe(status));
    return;
  }
  std::sort(times.begin(), times.end());
  std::sort(host.begin(), host.end());
  cuda::RowInfo row;
  if (cuda::find_geqrf_row(shape.batch, shape.m, shape.n, device, &row) != Status::ok) return;
  const char* const name = std::strrchr(row.source, '/');
  std::printf("%lld\t%lld\t%lld\t%.5f\t%.5f\t%.3f\t%.1f\t%s\n", static_cast<long long>(shape.batch),
              static_cast<long long>(shape.m), static_cast<long long>(shape.n), times[kCalls / 2],
              times[0], flops_of(shape) / (1e9 * times[kCalls / 2]), host[kCalls / 2],
              name == nullptr ? row.source : name + 1);
  std::fflush(stdout);
}

int usage() {
  std::fprintf(stderr,
               "usage: kernelbeam_cuda_qr_bench BATCHxMxN...\n"
               "       kernelbeam_cuda_qr_bench --squares BATCH,BATCH,... MOST_N\n");
  return 2;
}

std::vector<Shape> squares(const std::string& batches, std::int64_t most) {
  std::vector<Shape> shapes;
  for (std::size_t at = 0; at < batches.size();) {
    const std::size_t end = std::min(batches.find(',', at), batches.size());
    const std::int64_t batch = std::atoll(batches.substr(at, end - at).c_str());
    for (std::int64_t n = 1; n <= most; ++n) shapes.push_back({batch, n, n});
    at = end + 1;
  }
  return shapes;
}

}  // namespace

int main(int count, char** words) {
  std::vector<Shape> shapes;
  if (count == 4 && std::strcmp(words[1], "--squares") == 0) {
    shapes = squares(words[2], std::atoll(words[3]));
  } else {
    for (int i = 1; i < count; ++i) {
      long long batch = 0, m = 0, n = 0;
      if (std::sscanf(words[i], "%lldx%lldx%lld", &batch, &m, &n) != 3) return usage();
      shapes.push_back({batch, m, n});
    }
  }
  if (shapes.empty()) return usage();
  const auto device = cuda::Device::make(0);
  if (!device) {
    std::fprintf(stderr, "kernelbeam_cuda_qr_bench: no GPU that this library has kernels for\n");
    return 3;
  }
  cudaStream_t stream = nullptr;
  must(cudaStreamCreate(&stream), "cudaStreamCreate");
  const Memory flush(kFlushBytes);
  std::printf("batch\tm\tn\tmedian ms\tleast ms\tTFLOP/s\thost us\trow\n");
  for (const Shape& shape : shapes) time_shape(shape, *device, stream, flush);
  must(cudaStreamDestroy(stream), "cudaStreamDestroy");
}
