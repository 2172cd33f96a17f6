#include "apps/worker/trial.h"

#include <fmt/core.h>

#include <algorithm>

#include "check/case_check.h"
#include "measure/statistics.h"

namespace kbeam {
namespace {

// Event times are not known more finely than this.
constexpr double kTimerResolutionNs = 100;
// A seat may have something to say of every call.
constexpr std::size_t kMostWeaknesses = 40;

TaskProgress fresh_progress(const LoadedTask& task, std::int64_t unix_ms) {
  TaskProgress progress;
  progress.so_far.task_id = task.task.id;
  progress.so_far.task_hash = task.task_hash;
  Evaluation& evaluation = progress.so_far.evaluation;
  evaluation.candidate_id = task.task.candidate.id;
  evaluation.stage = task.task.stage;
  evaluation.verdict = Verdict::accepted;
  evaluation.grade = task.task.grade;
  evaluation.started_unix_ms = unix_ms;
  // No host code of the candidate runs here: what held it was around the planner.
  evaluation.sandbox = task.task.planner_sandbox;
  return progress;
}

void drop_measurements(TaskProgress& progress) {
  progress.so_far.evaluation.measurements.clear();
  progress.so_far.conditions.clear();
  progress.so_far.case_ns.clear();
  progress.so_far.case_least_ns.clear();
  progress.so_far.case_samples_ns.clear();
  progress.so_far.output_hashes.clear();
}

}  // namespace

Trial::Trial(const LoadedTask& task, std::optional<SavedProgress> progress, std::int64_t unix_ms)
    : task_(task) {
  if (progress) {
    saved_ = std::move(*progress);
  } else {
    saved_.now = fresh_progress(task, unix_ms);
    saved_.last_good = saved_.now;
  }
}

bool Trial::fail(Verdict verdict, std::string reason) {
  evaluation().verdict = verdict;
  evaluation().reason = std::move(reason);
  return false;
}

bool Trial::fail_on(const Case& the_case, Verdict verdict, const std::string& sentence) {
  if (the_case.pool == Pool::public_pool)
    return fail(verdict, fmt::format("case {} ({}): {}", the_case.name, the_case.family, sentence));
  if (verdict == Verdict::engine_failed) return fail(verdict, sentence);
  return fail(Verdict::failed_private, "failed a private case");
}

bool Trial::take(const Case& the_case, CheckReport report, std::uint64_t input_seed) {
  report.case_name = the_case.name;
  report.grade = task_.task.grade;
  report.seed = input_seed;
  std::vector<CheckReport>& checks = evaluation().checks;
  const auto known = std::ranges::find(checks, the_case.name, &CheckReport::case_name);
  if (known != checks.end())
    merge_reports(*known, report);
  else
    checks.push_back(report);
  return report.verdict == Verdict::accepted || fail_on(the_case, report.verdict, report.sentence);
}

bool Trial::settle_on(const std::string& uuid) {
  const std::string before = result().device.uuid;
  const bool other = !before.empty() && before != uuid;
  if (other) roll_back();
  for (TaskProgress* const progress : {&saved_.now, &saved_.last_good}) {
    progress->so_far.device.uuid = uuid;
    if (!other) continue;
    drop_measurements(*progress);
    progress->so_far.evaluation.weaknesses.clear();
    // What a plain run is for are the hashes of one device: its cases start again.
    if (task_.task.kind == TaskKind::plain) progress->checked.clear();
  }
  return other;
}

void Trial::describe(const SeatDevice& device) {
  result().device = {device.name,         device.uuid,      device.driver, device.multiprocessors,
                     device.architecture, device.weaknesses};
  for (const std::string& weakness : device.weaknesses) note(weakness);
}

void Trial::note(const std::string& weakness) {
  std::vector<std::string>& known = evaluation().weaknesses;
  if (known.size() < kMostWeaknesses && std::ranges::find(known, weakness) == known.end())
    known.push_back(weakness);
}

bool Trial::is_checked(const std::string& case_name) const {
  return std::ranges::find(saved_.now.checked, case_name) != saved_.now.checked.end();
}

bool Trial::is_timed(const std::string& case_name, int process) const {
  for (const Measurement& measurement : saved_.now.so_far.evaluation.measurements)
    if (measurement.case_name == case_name)
      return std::ranges::find(measurement.samples.process, process) !=
             measurement.samples.process.end();
  return false;
}

Measurement& Trial::measurement_of(const std::string& case_name) {
  std::vector<Measurement>& measurements = evaluation().measurements;
  const auto known = std::ranges::find(measurements, case_name, &Measurement::case_name);
  if (known != measurements.end()) return *known;
  Measurement& added = measurements.emplace_back();
  added.case_name = case_name;
  if (task_.task.reference) added.reference = task_.task.reference->id;
  added.stopping_rule = task_.task.rule.text();
  added.stop_reason = "all pairs taken";
  return added;
}

bool Trial::has_unconfirmed() const {
  const auto amount = [](const TaskProgress& progress) {
    std::size_t done = progress.checked.size() + progress.so_far.case_ns.size();
    for (const Measurement& measurement : progress.so_far.evaluation.measurements)
      done += measurement.samples.process.size();
    return done;
  };
  return amount(saved_.now) != amount(saved_.last_good);
}

void Trial::summarise() {
  for (Measurement& measurement : evaluation().measurements) {
    const auto noise = task_.task.noise.find(measurement.case_name);
    measurement.noise_floor =
        noise_floor(noise == task_.task.noise.end() ? 0 : noise->second, kTimerResolutionNs,
                    median(measurement.samples.candidate_ns));
    measurement.summary =
        summarise_pairs(measurement.samples, task_.task.rule.confidence, measurement.noise_floor);
  }
}

void Trial::hold_to_floors(const DeviceCeilings& ceilings) {
  for (const Measurement& measurement : evaluation().measurements) {
    const TaskCase& task_case = find_case(task_.task, measurement.case_name);
    const double least_ns = floor_ns(task_case, ceilings);
    if (!(measurement.summary.candidate_ns < least_ns)) continue;
    fail_on(task_case.the_case, Verdict::below_physics_floor,
            fmt::format("{:.0f} ns is below {:.0f} ns, the least time in which this device moves "
                        "the compulsory bytes and does the operations",
                        measurement.summary.candidate_ns, least_ns));
    return;
  }
}

const TaskCase& find_case(const EvaluationTask& task, const std::string& name) {
  for (const TaskCase& task_case : task.cases)
    if (task_case.the_case.name == name) return task_case;
  check_failed(__FILE__, __LINE__, "known case", "a task that was read names only its own cases");
}

double floor_ns(const TaskCase& task_case, const DeviceCeilings& ceilings) {
  double output_bytes = 0;
  for (const TensorShape& tensor : task_case.tensors)
    if (tensor.role == KBEAM_OUTPUT) output_bytes += static_cast<double>(tensor.bytes());
  const double moved = task_case.bytes - std::min(output_bytes, ceilings.l2_bytes);
  double least_ns = 0;
  if (ceilings.bytes_per_s > 0) least_ns = std::max(least_ns, moved / ceilings.bytes_per_s * 1e9);
  if (ceilings.flops_per_s > 0)
    least_ns = std::max(least_ns, task_case.flops / ceilings.flops_per_s * 1e9);
  return least_ns;
}

std::string shown_name(const Case& the_case) {
  return the_case.pool == Pool::public_pool ? the_case.name : "a private case";
}

}  // namespace kbeam
