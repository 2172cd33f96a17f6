// geqrf against the faster of OpenBLAS sgeqrf and sgeqr2, one thread each, about 1e6 elements a
// size, cold inputs, interleaved in both orders. Prints one line a size. For orientation: a claim
// needs a campaign (kbeam run).
#include <kernelbeam/qr.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <vector>

extern "C" {
void sgeqrf_(const int*, const int*, float*, const int*, float*, float*, const int*, int*);
void sgeqr2_(const int*, const int*, float*, const int*, float*, float*, int*);
void openblas_set_num_threads(int);
char* openblas_get_corename(void);
}

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPairs = 21;
constexpr std::size_t kFlushBytes = 64u << 20;

struct Sizes {
  std::int64_t batch;
  std::int64_t n;
};

class Bench {
 public:
  explicit Bench(Sizes sizes) : sizes_(sizes), executor_(kernelbeam::Executor::make(1)) {
    std::mt19937 generator(7);
    std::normal_distribution<float> normal;
    a_.resize(static_cast<std::size_t>(sizes.batch * sizes.n * sizes.n));
    for (float& value : a_) value = normal(generator);
    h_.resize(a_.size());
    tau_.resize(static_cast<std::size_t>(sizes.batch * sizes.n));
    call_ = {.batch = sizes.batch,
             .m = sizes.n,
             .n = sizes.n,
             .a = a_.data(),
             .h = h_.data(),
             .tau = tau_.data()};
    std::size_t bytes = 0;
    if (kernelbeam::geqrf_workspace_bytes(call_, *executor_, &bytes) != kernelbeam::Status::ok)
      std::exit(1);
    workspace_.resize(bytes);
    blas_workspace_.resize(static_cast<std::size_t>(sizes.n) * 64);
  }

  void run_kernelbeam() {
    if (kernelbeam::geqrf(call_, workspace_.data(), workspace_.size(), *executor_) !=
        kernelbeam::Status::ok)
      std::exit(1);
  }

  template <typename Factor>
  void run_lapack(Factor factor) {
    const int n = static_cast<int>(sizes_.n);
    std::memcpy(h_.data(), a_.data(), a_.size() * sizeof(float));
    for (std::int64_t b = 0; b < sizes_.batch; ++b)
      factor(n, h_.data() + b * sizes_.n * sizes_.n, tau_.data() + b * sizes_.n);
  }
  void run_sgeqrf() {
    run_lapack([this](int n, float* h, float* tau) {
      int info = 0;
      const int length = static_cast<int>(blas_workspace_.size());
      sgeqrf_(&n, &n, h, &n, tau, blas_workspace_.data(), &length, &info);
    });
  }
  void run_sgeqr2() {
    run_lapack([this](int n, float* h, float* tau) {
      int info = 0;
      sgeqr2_(&n, &n, h, &n, tau, blas_workspace_.data(), &info);
    });
  }

  // Milliseconds of one call after the caches were filled with something else.
  double time(const std::function<void()>& work) {
    for (std::size_t i = 0; i < flush_.size(); i += 16) flush_[i] += 1;
    const auto start = Clock::now();
    work();
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

 private:
  Sizes sizes_;
  std::unique_ptr<kernelbeam::Executor> executor_;
  std::vector<float> a_;
  std::vector<float> h_;
  std::vector<float> tau_;
  std::vector<char> workspace_;
  std::vector<float> blas_workspace_;
  std::vector<float> flush_ = std::vector<float>(kFlushBytes / sizeof(float));
  kernelbeam::Geqrf call_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The geometric mean over the sizes needs the ratio of each.
double compare(Sizes sizes) {
  Bench bench(sizes);
  std::vector<double> ours, sgeqrf, sgeqr2;
  for (int pair = 0; pair < kPairs; ++pair) {
    const auto measure_ours = [&] { ours.push_back(bench.time([&] { bench.run_kernelbeam(); })); };
    if (pair % 2 == 0) measure_ours();
    sgeqrf.push_back(bench.time([&] { bench.run_sgeqrf(); }));
    sgeqr2.push_back(bench.time([&] { bench.run_sgeqr2(); }));
    if (pair % 2 == 1) measure_ours();
  }
  const double lapack = std::min(median(sgeqrf), median(sgeqr2));
  const double ratio = lapack / median(ours);
  kernelbeam::RowInfo row;
  if (kernelbeam::find_geqrf_row(sizes.n, &row) != kernelbeam::Status::ok) std::exit(1);
  std::printf("%5lld x %-5lld %10.3f %10.3f %8.2f   %s %s [%s]\n",
              static_cast<long long>(sizes.batch), static_cast<long long>(sizes.n), median(ours),
              lapack, ratio, row.source, row.knobs, row.instruction_set);
  return ratio;
}

}  // namespace

int main() {
  openblas_set_num_threads(1);
  std::printf("OpenBLAS core: %s%s\n", openblas_get_corename(),
              std::getenv("OPENBLAS_CORETYPE")
                  ? " (OPENBLAS_CORETYPE is set: unset it to compare fairly)"
                  : "");
  std::printf("batch x n     kernelbeam   OpenBLAS    ratio   row\n");
  std::printf("                      ms         ms\n");
  double logarithms = 0;
  int count = 0;
  for (const std::int64_t n : {8, 16, 32, 48, 64, 100, 128, 256, 512, 1024}) {
    logarithms += std::log(compare({std::max<std::int64_t>(1, 1'000'000 / (n * n)), n}));
    ++count;
  }
  std::printf("geometric mean %38.2f\n", std::exp(logarithms / count));
}
