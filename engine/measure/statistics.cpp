#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

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

// Fresh processes differ in addresses and allocator state. When their medians lie further apart
// than the pooled interval is wide, pairs are not independent evidence and the interval must cover
// the medians of all processes.
Interval widen_for_processes(Interval pooled, std::span<const double> ratios,
                             const std::vector<int>& process) {
  std::map<int, std::vector<double>> by_process;
  for (std::size_t i = 0; i < ratios.size() && i < process.size(); ++i)
    by_process[process[i]].push_back(ratios[i]);
  double least = kInfinity;
  double most = -kInfinity;
  for (const auto& [id, values] : by_process) {
    least = std::min(least, median(values));
    most = std::max(most, median(values));
  }
  if (by_process.size() < 2 || !(most - least > pooled.high - pooled.low)) return pooled;
  return {std::min(pooled.low, least), std::max(pooled.high, most)};
}

Comparison decide(double low, double high, double delta) {
  if (low > 1 + delta) return Comparison::faster;
  if (high < 1 / (1 + delta)) return Comparison::slower;
  if (low >= 1 / (1 + delta) && high <= 1 + delta) return Comparison::same;
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

PairedSummary summarise_pairs(const PairedSamples& samples, double confidence, double delta) {
  PairedSummary summary;
  const std::vector<double> ratios = log_ratios(samples);
  summary.candidate_ns = median(samples.candidate_ns);
  summary.reference_ns = median(samples.reference_ns);
  summary.pairs = static_cast<int>(ratios.size());
  summary.confidence = confidence;
  summary.speedup = std::exp(median(ratios));
  const Interval interval =
      widen_for_processes(median_interval(ratios, confidence), ratios, samples.process);
  summary.low = std::exp(interval.low);
  summary.high = std::exp(interval.high);
  summary.comparison = decide(summary.low, summary.high, delta);
  return summary;
}

double geometric_mean(std::span<const double> values) {
  if (values.empty()) return kUnknown;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return std::exp(sum / static_cast<double>(values.size()));
}

GeomeanSummary summarise_cases(std::span<const Measurement> measurements, double confidence,
                               std::uint64_t seed) {
  constexpr int kResamples = 2000;
  if (measurements.empty()) return {kUnknown, kUnknown, kUnknown};
  std::vector<std::vector<double>> ratios;
  double sum = 0;
  for (const Measurement& measurement : measurements) {
    ratios.push_back(log_ratios(measurement.samples));
    if (ratios.back().empty()) return {kUnknown, kUnknown, kUnknown};
    sum += median(ratios.back());
  }
  const auto cases = static_cast<double>(ratios.size());
  std::mt19937_64 random(seed);
  std::vector<double> means;
  for (int round = 0; round < kResamples; ++round) {
    double total = 0;
    for (const std::vector<double>& values : ratios) {
      std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
      std::vector<double> resampled;
      for (std::size_t i = 0; i < values.size(); ++i) resampled.push_back(values[pick(random)]);
      total += median(resampled);
    }
    means.push_back(total / cases);
  }
  std::sort(means.begin(), means.end());
  const auto at = [&](double quantile) {
    return std::exp(means[static_cast<std::size_t>(quantile * (kResamples - 1))]);
  };
  return {std::exp(sum / cases), at((1 - confidence) / 2), at((1 + confidence) / 2)};
}

double noise_floor(double aa_log_ratio_median, double timer_resolution_ns, double bracket_ns) {
  return std::max({0.005, 2 * timer_resolution_ns / bracket_ns, 2 * std::abs(aa_log_ratio_median)});
}

std::string StoppingRule::text() const {
  return name + " " + std::to_string(pairs_per_process) + " x " + std::to_string(processes);
}

std::optional<std::string> may_end_early(const StoppingRule& rule,
                                         std::span<const Measurement> measurements) {
  const auto all = [&](auto holds) {
    return !measurements.empty() &&
           std::all_of(measurements.begin(), measurements.end(),
                       [&](const Measurement& m) { return holds(m.summary); });
  };
  if (rule.clear_ratio > 1 && all([&](const PairedSummary& summary) {
        return summary.low > rule.clear_ratio || summary.high < 1 / rule.clear_ratio;
      }))
    return "clear: every interval lies beyond " + std::to_string(rule.clear_ratio);
  if (rule.futile_speedup > 0 &&
      all([&](const PairedSummary& summary) { return summary.speedup <= rule.futile_speedup; }))
    return "futile: no median reaches " + std::to_string(rule.futile_speedup);
  return std::nullopt;
}

bool may_skip_pairs(const StoppingRule& rule, const PairedSamples& of_process) {
  const std::vector<double> ratios = log_ratios(of_process);
  if (rule.pairs_when_clear < 1 || ratios.size() < static_cast<std::size_t>(rule.pairs_when_clear))
    return false;
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  const double beyond = std::log(rule.pairs_clear_ratio);
  return *least > beyond || *most < -beyond;
}

MeasurementRules cpu_rules() {
  return {
      .control = {.name = "a/a", .pairs_per_process = 8, .processes = 1},
      .screen = {.name = "screen", .pairs_per_process = 5, .processes = 1, .fresh_base = true},
      .confirm = {.name = "confirm",
                  .pairs_per_process = 15,
                  .processes = 2,
                  .fresh_base = true,
                  .clear_ratio = 1.1,
                  .futile_speedup = 1.005},
      .promote = {.name = "promote", .pairs_per_process = 9, .processes = 3, .fresh_base = true}};
}

MeasurementRules device_rules() {
  MeasurementRules rules = cpu_rules();
  rules.control.pairs_per_process = 4;
  rules.screen.pairs_when_clear = 2;
  rules.confirm.pairs_when_clear = 7;  // so the fourth ABBA block ends it: 8 pairs a process
  rules.promote.pairs_per_process = 31;
  rules.promote.pairs_when_clear = 11;
  return rules;
}

}  // namespace kbeam
