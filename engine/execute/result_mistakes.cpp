// A result comes from a machine that has the key of its seal. What it says is still held against
// the task: statistics and claims are made from it.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/defence.h"
#include "execute/evaluation_task.h"
#include "measure/statistics.h"

namespace kbeam {
namespace {

constexpr std::size_t kMostMistakes = 4;

bool is_time(double ns) {
  return std::isfinite(ns) && ns > 0;
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

class ResultInspection {
 public:
  ResultInspection(const EvaluationTask& task, const TaskResult& result)
      : task_(task), result_(result), evaluation_(result.evaluation) {}

  ResultInspection& look_at_samples() {
    std::set<std::string> seen;
    for (const Measurement& measurement : evaluation_.measurements) {
      if (!seen.insert(measurement.case_name).second)
        say("case {} is measured twice", measurement.case_name);
      look_at(measurement);
    }
    look_at_medians();
    return *this;
  }

  ResultInspection& look_at_verdict() {
    for (const CheckReport& report : evaluation_.checks)
      if (std::ranges::none_of(task_.cases, [&](const TaskCase& one) {
            return one.the_case.name == report.case_name;
          }))
        say("it reports on case {}, which the task does not have", report.case_name);
    if (evaluation_.gates || evaluation_.public_pool || evaluation_.private_pool ||
        evaluation_.sealed_pool || evaluation_.generality_gap || evaluation_.held_out ||
        evaluation_.sealed_seed)
      say("it speaks of gates or pools, of which no worker knows");
    if (evaluation_.sandbox > task_.planner_sandbox)
      say("it claims the sandbox {}; the plans were made behind {}", to_string(evaluation_.sandbox),
          to_string(task_.planner_sandbox));
    for (const double seconds :
         {result_.wall_s, evaluation_.build_s, evaluation_.check_s, evaluation_.measure_s})
      if (!std::isfinite(seconds) || seconds < 0) say("a step took {} s", seconds);
    for (const Measurement& measurement : evaluation_.measurements) {
      const auto noise = task_.noise.find(measurement.case_name);
      const double least = noise_floor(noise == task_.noise.end() ? 0 : noise->second, 0, 1);
      if (!std::isfinite(measurement.noise_floor) || measurement.noise_floor < least)
        say("case {} has the noise floor {}; it is {} at least", measurement.case_name,
            measurement.noise_floor, least);
    }
    if (evaluation_.verdict == Verdict::accepted)
      look_at_acceptance();
    else if (!evaluation_.measurements.empty())
      say("it was not accepted and has times");
    return *this;
  }

  std::vector<std::string> mistakes() { return std::move(mistakes_); }

 private:
  template <typename... T>
  void say(fmt::format_string<T...> format, T&&... values) {
    if (mistakes_.size() < kMostMistakes)
      mistakes_.push_back(fmt::format(format, std::forward<T>(values)...));
  }

  void look_at(const Measurement& measurement) {
    const std::string& name = measurement.case_name;
    if (task_.kind != TaskKind::compare || !is_among(task_.timed_cases, name))
      return say("case {} is measured, for which the task did not ask", name);
    if (!task_.reference || measurement.reference != task_.reference->id)
      say("case {} is measured against {}, not the task's reference", name, measurement.reference);
    if (measurement.threads != 1) say("case {} ran on {} threads", name, measurement.threads);
    look_at(name, measurement.samples);
  }

  void look_at(const std::string& name, const PairedSamples& samples) {
    const std::size_t pairs = samples.candidate_ns.size();
    if (pairs == 0 || samples.reference_ns.size() != pairs ||
        samples.candidate_first.size() != pairs || samples.process.size() != pairs)
      return say(
          "case {} has {} times of the candidate, {} of the reference, {} orders and {} "
          "processes: they come in pairs",
          name, pairs, samples.reference_ns.size(), samples.candidate_first.size(),
          samples.process.size());
    std::map<int, int> pairs_of;
    for (std::size_t i = 0; i < pairs; ++i) {
      for (const double ns : {samples.candidate_ns[i], samples.reference_ns[i]})
        if (!is_time(ns)) return say("case {} has a time of {} ns", name, ns);
      if (samples.candidate_first[i] > 1)
        return say("case {} has the order {}", name, samples.candidate_first[i]);
      const int process = samples.process[i];
      if (process < 0 || process >= task_.rule.processes ||
          ++pairs_of[process] > task_.rule.pairs_per_process)
        return say("case {} has more pairs or processes than the rule's {} x {}", name,
                   task_.rule.pairs_per_process, task_.rule.processes);
    }
  }

  // Of trusted subjects.
  void look_at_medians() {
    for (const auto& [name, samples] : result_.case_samples_ns) {
      if (!is_among(task_.timed_cases, name))
        say("case {} is timed, for which the task did not ask", name);
      for (const double ns : samples)
        if (!is_time(ns)) return say("case {} has a time of {} ns", name, ns);
    }
    for (const auto& [name, ns] : result_.case_ns) {
      const auto samples = result_.case_samples_ns.find(name);
      if (samples == result_.case_samples_ns.end() || !(median(samples->second) == ns))
        say("case {} has the median {} ns, which is not that of its times", name, ns);
    }
    for (const auto& [name, ns] : result_.case_least_ns) {
      const auto samples = result_.case_samples_ns.find(name);
      if (samples == result_.case_samples_ns.end() || samples->second.empty() ||
          *std::ranges::min_element(samples->second) != ns)
        say("case {} has the least time {} ns, which is not that of its times", name, ns);
    }
  }

  // What the conductor asks of a candidate; a build without the defence leaves private cases out.
  bool is_served(const std::string& name) const {
    for (const TaskCase& one : task_.cases)
      if (one.the_case.name == name)
        return task_.candidate.plan_of_case.contains(name) &&
               (defence_is_on(Defence::private_cases) || one.the_case.pool == Pool::public_pool);
    return false;
  }

  void look_at_acceptance() {
    const PlannedDevice& planned = task_.planned_for;
    const DeviceFacts& device = result_.device;
    if (device.architecture != 0 && (device.architecture != planned.architecture ||
                                     device.multiprocessors != planned.multiprocessors))
      say("it is of sm_{} with {} multiprocessors; the task was planned for sm_{} with {}",
          device.architecture, device.multiprocessors, planned.architecture,
          planned.multiprocessors);
    if (task_.kind == TaskKind::time_only) return;
    std::set<std::string> good;
    for (const CheckReport& report : evaluation_.checks) {
      if (report.verdict == Verdict::accepted) good.insert(report.case_name);
      if (report.verdict != Verdict::accepted && report.verdict != Verdict::not_supported)
        say("it was accepted, but case {} was not: {}", report.case_name,
            to_string(report.verdict));
    }
    for (const std::string& name : task_.check_cases)
      if (is_served(name) && !good.contains(name))
        say("it was accepted, but case {} was not checked", name);
    if (task_.kind != TaskKind::compare) return;
    for (const std::string& name : task_.timed_cases)
      if (is_served(name) &&
          std::ranges::find(evaluation_.measurements, name, &Measurement::case_name) ==
              evaluation_.measurements.end())
        say("it was accepted, but case {} was not measured", name);
  }

  const EvaluationTask& task_;
  const TaskResult& result_;
  const Evaluation& evaluation_;
  std::vector<std::string> mistakes_;
};

}  // namespace

std::vector<std::string> find_result_mistakes(const EvaluationTask& task,
                                              const TaskResult& result) {
  return ResultInspection(task, result).look_at_samples().look_at_verdict().mistakes();
}

std::vector<std::string> find_sample_mistakes(const EvaluationTask& task,
                                              const TaskResult& result) {
  return ResultInspection(task, result).look_at_samples().mistakes();
}

}  // namespace kbeam
