#include "measure/aa_study.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "measure/comparison_course.h"
#include "measure/statistics.h"

namespace kbeam {
namespace {

constexpr double kConfidence = 0.99;
constexpr double kPower = 0.95;
// Pairs tried for power, ten a process, and how many windows of a trace are tried at most.
constexpr std::array kPairsTried{30, 60, 90, 120, 180, 240, 360, 480, 720, 1000};
constexpr int kPairsPerProcess = 10;
constexpr int kMostControlPairs = 240;
constexpr std::size_t kMostWindows = 100;

int longest_process(const StoppingRule& rule) {
  int longest = 0;
  for (int process = 0; process < process_count(rule); ++process)
    longest = std::max(longest, pairs_in_process(rule, process));
  return longest;
}

// Replays comparisons from one place of a trace onwards.
class Replay {
 public:
  Replay(const ProcessSequence& processes, double timer_resolution_ns)
      : processes_(processes), timer_resolution_ns_(timer_resolution_ns) {}

  bool is_at_end() const { return next_ >= processes_.size(); }
  void move_to(std::size_t process) { next_ = process; }

  // Nothing: the trace ends before the comparison does.
  std::optional<Measurement> compare(const StoppingRule& rule, double noise, double gain) {
    ComparisonCourse course(rule, 1, [&](const std::string&, double bracket_ns) {
      return noise_floor(noise, timer_resolution_ns_, bracket_ns);
    });
    std::vector<Measurement> measurement(1);
    while (!course.is_over()) {
      if (is_at_end()) return std::nullopt;
      processes_.append(next_++, course.pairs(), gain, course.process(), measurement[0].samples);
      course.end_process(measurement);
    }
    return measurement[0];
  }

  std::optional<double> control(const StoppingRule& rule) {
    if (process_count(rule) * pairs_in_process(rule, 0) == 0) return 0;
    const std::optional<Measurement> control = compare(rule, 0, 0);
    if (!control) return std::nullopt;
    return aa_noise(control->samples, kConfidence);
  }

 private:
  const ProcessSequence& processes_;
  double timer_resolution_ns_;
  std::size_t next_ = 0;
};

StoppingRule fixed_rule(int pairs) {
  return {.name = "power",
          .pairs_per_process = kPairsPerProcess,
          .processes = pairs / kPairsPerProcess};
}

// How often a gain is called faster in windows of a trace, each with a control before it.
double share_found(const ProcessSequence& processes, int pairs, double gain) {
  const StoppingRule rule = fixed_rule(pairs);
  const StoppingRule control = fixed_rule(std::min(pairs, kMostControlPairs));
  const auto length = static_cast<std::size_t>(process_count(rule) + process_count(control));
  if (processes.size() < length) return 0;
  const std::size_t starts = processes.size() - length + 1;
  const std::size_t stride = std::max<std::size_t>(1, starts / kMostWindows);
  int windows = 0;
  int found = 0;
  for (std::size_t start = 0; start < starts; start += stride, ++windows) {
    Replay replay(processes, AaRequest().timer_resolution_ns);
    replay.move_to(start);
    const double noise = replay.control(control).value_or(0);
    const std::optional<Measurement> compared = replay.compare(rule, noise, gain);
    found += compared && compared->summary.comparison == Comparison::faster ? 1 : 0;
  }
  return found / static_cast<double>(windows);
}

}  // namespace

ProcessSequence::ProcessSequence(const PairedSamples& trace, int pairs) : trace_(trace) {
  std::map<int, std::vector<std::size_t>> of_process;
  for (std::size_t i = 0; i < trace.process.size(); ++i) of_process[trace.process[i]].push_back(i);
  const auto length = static_cast<std::ptrdiff_t>(pairs);
  bool any = true;
  for (std::ptrdiff_t begin = 0; any; begin += length) {
    any = false;
    for (const auto& [process, indices] : of_process) {
      if (begin + length > std::ssize(indices)) continue;
      any = true;
      pieces_.emplace_back(indices.begin() + begin, indices.begin() + begin + length);
    }
  }
}

void ProcessSequence::append(std::size_t index, int pairs, double gain, int process,
                             PairedSamples& to) const {
  for (std::size_t i = 0; i < static_cast<std::size_t>(pairs); ++i) {
    const std::size_t pair = pieces_[index].at(i);
    to.candidate_ns.push_back(trace_.candidate_ns[pair]);
    to.reference_ns.push_back(trace_.reference_ns[pair] * (1 + gain));
    to.candidate_first.push_back(trace_.candidate_first[pair]);
    to.process.push_back(process);
  }
}

StoppingRule AaRequest::first_look_control() {
  StoppingRule rule = sequential_rule("a/a");
  rule.looks.resize(1);
  return rule;
}

std::size_t AaStudy::count(Comparison comparison) const {
  return static_cast<std::size_t>(
      std::ranges::count(comparisons, comparison, &PairedSummary::comparison));
}

AaStudy study_identical_kernels(const PairedSamples& trace, const AaRequest& request) {
  const ProcessSequence processes(
      trace, std::max(longest_process(request.rule), longest_process(request.control)));
  Replay replay(processes, request.timer_resolution_ns);
  AaStudy study;
  while (!replay.is_at_end()) {
    const std::optional<double> noise = replay.control(request.control);
    if (!noise) return study;
    for (int i = 0; i < request.comparisons_per_control; ++i) {
      const std::optional<Measurement> compared =
          replay.compare(request.rule, *noise, request.gain);
      if (!compared) return study;
      study.noise_floors.push_back(compared->noise_floor);
      study.comparisons.push_back(compared->summary);
    }
  }
  return study;
}

std::vector<PowerPoint> study_power(const PairedSamples& trace, std::span<const double> gains) {
  const ProcessSequence processes(trace, kPairsPerProcess);
  std::vector<PowerPoint> points;
  for (const double gain : gains) {
    PowerPoint point{.gain = gain};
    const auto enough = std::ranges::find_if(
        kPairsTried, [&](int pairs) { return share_found(processes, pairs, gain) >= kPower; });
    if (enough != kPairsTried.end()) point.pairs = *enough;
    AaRequest request;
    request.gain = gain;
    const AaStudy study = study_identical_kernels(trace, request);
    point.found_by_rule = static_cast<double>(study.count(Comparison::faster)) /
                          static_cast<double>(std::max<std::size_t>(1, study.comparisons.size()));
    points.push_back(point);
  }
  return points;
}

double simulate_power(const SimulatedPower& request) {
  std::mt19937_64 random(request.seed);
  constexpr double kQuartilesOfNormal = 1.349;
  std::normal_distribution<double> noise(0, request.pair_spread / kQuartilesOfNormal);
  PairedSamples trace;
  const AaRequest aa{.gain = request.gain};
  // Processes that a control and a whole comparison can take: each trial has pairs of its own.
  const int processes = process_count(aa.control) + process_count(aa.rule);
  int found = 0;
  for (int trial = 0; trial < request.trials; ++trial) {
    trace = {};
    for (int process = 0; process < processes; ++process)
      for (int pair = 0; pair < kPairsPerProcess; ++pair) {
        trace.candidate_ns.push_back(1e6);
        trace.reference_ns.push_back(1e6 * std::exp(noise(random)));
        trace.candidate_first.push_back(0);
        trace.process.push_back(process);
      }
    const AaStudy study = study_identical_kernels(trace, aa);
    const PairedSummary& first = study.comparisons.front();
    found += first.comparison == Comparison::faster && first.pairs <= request.most_pairs ? 1 : 0;
  }
  return found / static_cast<double>(request.trials);
}

}  // namespace kbeam
