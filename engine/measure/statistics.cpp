#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <random>
#include <utility>

#include "base/check.h"

namespace kbeam {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> log_ratios(const PairedSamples& samples) {
  CHECK(samples.candidate_ns.size() == samples.reference_ns.size(), "samples come in pairs");
  std::vector<double> ratios;
  for (std::size_t i = 0; i < samples.candidate_ns.size(); ++i)
    ratios.push_back(std::log(samples.reference_ns[i] / samples.candidate_ns[i]));
  return ratios;
}

using Groups = std::vector<std::vector<double>>;  // log-ratios by fresh process

Groups by_process(std::span<const double> ratios, const std::vector<int>& process) {
  std::map<int, std::vector<double>> groups;
  for (std::size_t i = 0; i < ratios.size(); ++i)
    groups[i < process.size() ? process[i] : 0].push_back(ratios[i]);
  Groups list;
  for (auto& [id, values] : groups) list.push_back(std::move(values));
  return list;
}

double variance(std::span<const double> values) {
  const auto n = static_cast<double>(values.size());
  double mean = 0;
  for (const double value : values) mean += value / n;
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return sum / (n - 1);
}

std::vector<double> medians_of(const Groups& groups) {
  std::vector<double> medians;
  for (const std::vector<double>& values : groups) medians.push_back(median(values));
  return medians;
}

Interval interval_of_processes(const Groups& groups, double confidence) {
  const std::vector<double> medians = medians_of(groups);
  const auto count = static_cast<double>(medians.size());
  double mean = 0;
  for (const double value : medians) mean += value / count;
  const double half = student_quantile(confidence, static_cast<int>(medians.size()) - 1) *
                      std::sqrt(variance(medians) / count);
  return {mean - half, mean + half};
}

// Fresh processes differ in addresses and allocator state, so pairs of one process are not
// independent evidence of the whole: the interval covers what the order statistics of all pairs say
// and what Student's t over the medians of processes says.
Interval interval_of(std::span<const double> ratios, const std::vector<int>& process,
                     double confidence) {
  const Interval pooled = median_interval(ratios, confidence);
  const Groups groups = by_process(ratios, process);
  if (groups.size() < 2) return pooled;
  const Interval wide = interval_of_processes(groups, confidence);
  return {std::min(pooled.low, wide.low), std::max(pooled.high, wide.high)};
}

// Two-sided probability that Student's t with so many degrees of freedom lies within [-t, t].
double student_within(double t, int degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1;
  double sum = 0;
  for (int k = odd ? 2 : 1; k < degrees; k += 2) {
    sum += term;
    term *= cosine * cosine * k / (k + 1);
  }
  return odd ? 2 / std::numbers::pi * (angle + std::sin(angle) * sum) : std::sin(angle) * sum;
}

// One case of a bootstrap: processes are drawn, then pairs in each of them.
class ResampledCase {
 public:
  ResampledCase(std::span<const double> ratios, const std::vector<int>& process)
      : groups_(by_process(ratios, process)) {}
  std::size_t processes() const { return groups_.size(); }

  // `places` in [0, 1) choose processes: cases of the same processes see the same ones drawn.
  double median_of_a_draw(std::span<const double> places, std::mt19937_64& random) {
    drawn_.clear();
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const auto chosen = static_cast<std::size_t>(places[i] * static_cast<double>(groups_.size()));
      const std::vector<double>& group = groups_[chosen];
      std::uniform_int_distribution<std::size_t> pick(0, group.size() - 1);
      for (std::size_t j = 0; j < group.size(); ++j) drawn_.push_back(group[pick(random)]);
    }
    return median(drawn_);
  }

 private:
  Groups groups_;
  std::vector<double> drawn_;
};

Comparison decide(double low, double high, double delta) {
  if (low > 1 + delta) return Comparison::faster;
  if (high < 1 / (1 + delta)) return Comparison::slower;
  if (delta <= kWidestSame && low >= 1 / (1 + delta) && high <= 1 + delta) return Comparison::same;
  return Comparison::ambiguous;
}

}  // namespace

double median(std::span<const double> values) {
  if (values.empty()) return kUnknown;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

Interval median_interval(std::span<const double> values, double confidence) {
  const std::size_t n = values.size();
  const double tail_allowed = (1 - confidence) / 2;
  // P(Binomial(n, 1/2) < rank) grows with rank; the interval is [x_rank, x_(n + 1 - rank)] for the
  // largest rank whose tail is still allowed.
  double tail = 0;
  double term = std::pow(0.5, static_cast<double>(n));
  std::size_t rank = 0;
  for (std::size_t k = 0; k < n; ++k) {
    tail += term;
    if (tail > tail_allowed) break;
    rank = k + 1;
    term *= static_cast<double>(n - k) / static_cast<double>(k + 1);
  }
  if (rank == 0) return {-kInfinity, kInfinity};
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return {sorted[rank - 1], sorted[n - rank]};
}

double student_quantile(double confidence, int degrees) {
  CHECK(degrees >= 1, "Student's t has a degree of freedom");
  double low = 0;
  double high = 1;
  while (student_within(high, degrees) < confidence) high *= 2;
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (student_within(middle, degrees) < confidence ? low : high) = middle;
  }
  return high;
}

PairedSummary summarise_pairs(const PairedSamples& samples, double confidence, double delta) {
  PairedSummary summary;
  const std::vector<double> ratios = log_ratios(samples);
  summary.candidate_ns = median(samples.candidate_ns);
  summary.reference_ns = median(samples.reference_ns);
  summary.pairs = static_cast<int>(ratios.size());
  summary.confidence = confidence;
  summary.speedup = std::exp(median(ratios));
  const Interval interval = interval_of(ratios, samples.process, confidence);
  summary.low = std::exp(interval.low);
  summary.high = std::exp(interval.high);
  summary.comparison = decide(summary.low, summary.high, delta);
  return summary;
}

double ranking_speedup(const PairedSamples& samples) {
  const auto fastest = [](std::vector<double> times) {
    if (times.empty()) return kUnknown;
    std::ranges::sort(times);
    const std::size_t count =
        std::min(times.size(), std::max<std::size_t>(2, times.size() * 2 / 5));
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += times[i];
    return sum / static_cast<double>(count);
  };
  return fastest(samples.reference_ns) / fastest(samples.candidate_ns);
}

double geometric_mean(std::span<const double> values) {
  if (values.empty()) return kUnknown;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

GeomeanSummary summarise_cases(std::span<const Measurement> measurements, double confidence,
                               std::uint64_t seed) {
  constexpr int kResamples = 8000;  // ten of them beyond each end of a 99.75 % interval
  if (measurements.empty()) return {kUnknown, kUnknown, kUnknown};
  std::vector<ResampledCase> resampled;
  double sum = 0;
  for (const Measurement& measurement : measurements) {
    const std::vector<double> ratios = log_ratios(measurement.samples);
    if (ratios.empty()) return {kUnknown, kUnknown, kUnknown};
    sum += median(ratios);
    resampled.emplace_back(ratios, measurement.samples.process);
  }
  const auto cases = static_cast<double>(resampled.size());
  std::size_t most_processes = 0;
  for (const ResampledCase& one : resampled)
    most_processes = std::max(most_processes, one.processes());
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> anywhere(0, 1);
  std::vector<double> places(most_processes);
  std::vector<double> means;
  for (int round = 0; round < kResamples; ++round) {
    std::ranges::generate(places, [&] { return anywhere(random); });
    double total = 0;
    for (ResampledCase& one : resampled) total += one.median_of_a_draw(places, random);
    means.push_back(total / cases);
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double quantile) {
    return std::exp(means[static_cast<std::size_t>(quantile * (kResamples - 1))]);
  };
  return {std::exp(sum / cases), at((1 - confidence) / 2), at((1 + confidence) / 2)};
}

double aa_noise(const PairedSamples& control, double confidence) {
  const std::vector<double> ratios = log_ratios(control);
  const Interval interval = interval_of(ratios, control.process, confidence);
  if (std::isfinite(interval.low) && std::isfinite(interval.high))
    return std::max(std::abs(interval.low), std::abs(interval.high));
  double farthest = 0;
  for (const double ratio : ratios) farthest = std::max(farthest, std::abs(ratio));
  return farthest;
}

double noise_floor(double aa_noise, double timer_resolution_ns, double bracket_ns) {
  constexpr double kLeastGain = 0.005;
  return std::max({kLeastGain, 2 * timer_resolution_ns / bracket_ns, aa_noise});
}

}  // namespace kbeam
