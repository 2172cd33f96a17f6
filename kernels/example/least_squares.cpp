// Fits a parabola to each of 1000 noisy series: one batched QR, then y = Q'b and back substitution
// for each series.
#include <kernelbeam/qr.h>

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

// b := Q' b, one reflector after the other.
void apply_q_transposed(const float* h, const float* tau, float* b) {
  for (int j = 0; j < kTerms; ++j) {
    const float* v = h + j * kPoints;
    double dot = b[j];
    for (int i = j + 1; i < kPoints; ++i) dot += static_cast<double>(v[i]) * b[i];
    const double scaled = tau[j] * dot;
    b[j] = static_cast<float>(b[j] - scaled);
    for (int i = j + 1; i < kPoints; ++i) b[i] = static_cast<float>(b[i] - scaled * v[i]);
  }
}

void solve_upper(const float* h, float* b) {
  for (int j = kTerms - 1; j >= 0; --j) {
    double value = b[j];
    for (int k = j + 1; k < kTerms; ++k) value -= static_cast<double>(h[k * kPoints + j]) * b[k];
    b[j] = static_cast<float>(value / h[j * kPoints + j]);
  }
}

}  // namespace

int main() {
  std::vector<float> a(kSeries * kPoints * kTerms);
  std::vector<float> b(kSeries * kPoints);
  std::mt19937 generator(1);
  std::normal_distribution<double> noise(0, 0.01);
  for (int s = 0; s < kSeries; ++s) {
    for (int i = 0; i < kPoints; ++i) {
      const double t = -1 + 2.0 * (i + noise(generator)) / (kPoints - 1);
      double power = 1;
      double y = noise(generator);
      for (int j = 0; j < kTerms; ++j, power *= t) {
        a[(s * kTerms + j) * kPoints + i] = static_cast<float>(power);
        y += kTruth[j] * power;
      }
      b[s * kPoints + i] = static_cast<float>(y);
    }
  }

  std::vector<float> h(a.size());
  std::vector<float> tau(kSeries * kTerms);
  const auto executor = kernelbeam::Executor::make(1);
  const kernelbeam::Geqrf call = {
      .batch = kSeries, .m = kPoints, .n = kTerms, .a = a.data(), .h = h.data(), .tau = tau.data()};
  std::size_t bytes = 0;
  kernelbeam::Status status = kernelbeam::geqrf_workspace_bytes(call, *executor, &bytes);
  std::vector<char> workspace(bytes);
  if (status == kernelbeam::Status::ok)
    status = kernelbeam::geqrf(call, workspace.data(), bytes, *executor);
  if (status != kernelbeam::Status::ok) {
    std::fprintf(stderr, "geqrf: %s\n", kernelbeam::describe(status));
    return 1;
  }

  double worst = 0;
  for (int s = 0; s < kSeries; ++s) {
    float* series = &b[s * kPoints];
    apply_q_transposed(&h[s * kTerms * kPoints], &tau[s * kTerms], series);
    solve_upper(&h[s * kTerms * kPoints], series);
    for (int j = 0; j < kTerms; ++j) worst = std::max(worst, std::fabs(series[j] - kTruth[j]));
  }
  std::printf("%d fits, largest error of a coefficient: %.4f\n", kSeries, worst);
  return worst < 0.05 ? 0 : 1;
}
