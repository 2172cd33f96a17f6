#include "measure/comparison_course.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "measure/statistics.h"

namespace kbeam {

ComparisonCourse::ComparisonCourse(const StoppingRule& rule, std::size_t cases, DeltaFor delta_for)
    : rule_(rule), delta_for_(std::move(delta_for)), open_(cases, true) {}

bool ComparisonCourse::is_at_look() const {
  return !is_over_ && process_ > 0 && look_after(rule_, process_ - 1).has_value();
}

double ComparisonCourse::growth() const {
  const auto open = static_cast<int>(std::count(open_.begin(), open_.end(), true));
  int pairs = 0;
  for (int process = process_; process < process_count(rule_); ++process) {
    pairs += open * pairs_in_process(rule_, process);
    if (look_after(rule_, process)) break;
  }
  return pairs / static_cast<double>(std::max(1, pairs_so_far_));
}

void ComparisonCourse::end_process(std::span<Measurement> measurements) {
  CHECK(measurements.size() == open_.size(), "a course decides the cases that it was made for");
  CHECK(!is_over_, "a comparison that has ended takes no more processes");
  pairs_so_far_ = 0;
  for (const Measurement& measurement : measurements)
    pairs_so_far_ += static_cast<int>(measurement.samples.candidate_ns.size());
  const std::optional<int> number = look_after(rule_, process_);
  const bool looks_anyway = !rule_.is_sequential() && rule_.clear_ratio + rule_.futile_speedup > 0;
  if (number || looks_anyway) look(measurements, number.value_or(0));
  if (++process_ == process_count(rule_)) is_over_ = true;
}

void ComparisonCourse::look(std::span<Measurement> measurements, int number) {
  const double confidence = interval_confidence(rule_);
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    if (!open_[i]) continue;
    Measurement& measurement = measurements[i];
    measurement.noise_floor =
        delta_for_(measurement.case_name, median(measurement.samples.candidate_ns));
    measurement.summary = summarise_pairs(measurement.samples, confidence, measurement.noise_floor);
    if (!rule_.is_sequential() || measurement.summary.comparison == Comparison::ambiguous) continue;
    open_[i] = false;
    measurement.stop_reason =
        "decided at look " + std::to_string(number) + " of " + std::to_string(rule_.looks.size());
  }
  is_over_ = std::find(open_.begin(), open_.end(), true) == open_.end();
  const bool is_last = process_ + 1 == process_count(rule_);
  if (is_over_ || is_last) return;
  const std::optional<std::string> why = may_end_early(rule_, measurements);
  if (why) cut_short(measurements, *why);
}

void ComparisonCourse::cut_short(std::span<Measurement> measurements, const std::string& why) {
  for (std::size_t i = 0; i < measurements.size(); ++i)
    if (open_[i]) measurements[i].stop_reason = why;
  is_over_ = true;
}

}  // namespace kbeam
