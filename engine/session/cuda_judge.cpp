#include "session/cuda_judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/process.h"
#include "session/pools.h"

namespace kbeam {
namespace {

constexpr std::size_t kMostWorkerOutput = 64 * 1024;

// A task folder that is gone when its evaluation is over.
class TemporaryTask {
 public:
  static Result<TemporaryTask> make(const std::filesystem::path& parent) {
    std::error_code trouble;
    std::filesystem::create_directories(parent, trouble);
    ASSIGN_OR_RETURN(std::filesystem::path folder, make_temporary_folder(parent, "task"));
    return TemporaryTask(std::move(folder));
  }
  TemporaryTask(TemporaryTask&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  TemporaryTask& operator=(TemporaryTask&&) = delete;
  ~TemporaryTask() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  explicit TemporaryTask(std::filesystem::path folder) : folder_(std::move(folder)) {}
  std::filesystem::path folder_;
};

CudaSubject as_cuda(const Subject& subject) {
  return {.id = subject.id,
          .rows = subject.rows,
          .modules = subject.modules,
          .kernels = subject.kernels,
          .may_use_libraries = subject.may_use_libraries};
}

Evaluation engine_failure(const TaskRequest& request, const Error& error, const Clock& clock) {
  Evaluation evaluation{.candidate_id = request.candidate.id,
                        .stage = request.stage,
                        .verdict = Verdict::engine_failed,
                        .reason = error.text(),
                        .grade = request.grade};
  evaluation.started_unix_ms = evaluation.ended_unix_ms = clock.unix_ms();
  return evaluation;
}

bool calls_library(const AssembledTask& assembled) {
  return std::ranges::any_of(assembled.files.plans,
                             [](const auto& plan) { return plan.second.uses_library(); });
}

}  // namespace

CudaJudge::CudaJudge(const Problem& problem, ProblemCode& code, CudaJudgeOptions options,
                     const Clock& clock)
    : problem_(problem), code_(code), options_(std::move(options)), clock_(clock) {}

void CudaJudge::set_noise(const std::string& case_name, double aa_noise) {
  noise_[case_name] = aa_noise;
}

void CudaJudge::set_floor(const std::string& case_name, double least_ns) {
  floor_ns_[case_name] = least_ns;
}

TaskRequest CudaJudge::request_for(TaskKind kind, const Subject& candidate, Stage stage) const {
  TaskRequest request;
  request.problem = &problem_;
  request.code = &code_;
  request.planner = options_.planner;
  request.kind = kind;
  request.candidate = as_cuda(candidate);
  request.problem_module = options_.problem_module;
  request.problem_cuda_module = options_.problem_cuda_module;
  request.grade = options_.grade;
  request.stage = stage;
  request.call_timeout_s = options_.call_timeout_s;
  request.noise = noise_;
  return request;
}

Result<TaskResult> CudaJudge::run_task(const AssembledTask& assembled, double timeout_s) {
  ASSIGN_OR_RETURN(const TemporaryTask place, TemporaryTask::make(options_.task_folder));
  const std::filesystem::path folder = place.folder() / "task";
  RETURN_IF_ERROR(write_task_folder(assembled.task, assembled.files, folder));
  ASSIGN_OR_RETURN(const ProcessOutcome outcome,
                   run_process({.command = {options_.worker.string(), folder.string(), "--device",
                                            std::to_string(options_.device)},
                                .folder = {},
                                .environment = {"PATH=/usr/bin:/bin", "LANG=C.UTF-8"},
                                .timeout_s = timeout_s,
                                .output_limit_bytes = kMostWorkerOutput,
                                .cancelled = options_.give_up,
                                .before_exec = {}}));
  const std::string attempted = "evaluate " + assembled.task.candidate.id + " on the GPU";
  if (outcome.timed_out && options_.give_up && options_.give_up())
    return Error{ErrorCode::busy, attempted, "the evaluation was interrupted", ""};
  if (outcome.timed_out)
    return Error{
        ErrorCode::unavailable, attempted,
        fmt::format("kbeam-worker did not end within {:.0f} s: {}", timeout_s, outcome.output),
        "see `kbeam doctor`"};
  ASSIGN_OR_RETURN(const LoadedTask task, read_task_folder(folder));
  Result<TaskResult> result = read_result(task, folder);
  if (!result.ok())
    return Error{result.error().code, attempted,
                 fmt::format("kbeam-worker ended with {} and left no result: {}",
                             outcome.signal != 0 ? fmt::format("signal {}", outcome.signal)
                                                 : fmt::format("code {}", outcome.exit_code),
                             outcome.output.empty() ? result.error().text() : outcome.output),
                 "see `kbeam doctor`"};
  if (!result->device_trouble.empty())
    return Error{ErrorCode::unavailable, attempted,
                 "the device is no longer sound: " + result->device_trouble,
                 "`kbeam-worker --probe --clear` lifts the quarantine after a good probe"};
  return result;
}

// A time below what the device needs to move the compulsory bytes is not believed.
void CudaJudge::hold_to_floors(Evaluation& evaluation) const {
  if (evaluation.verdict != Verdict::accepted) return;
  for (const Measurement& measurement : evaluation.measurements) {
    const auto floor = floor_ns_.find(measurement.case_name);
    if (floor == floor_ns_.end() || measurement.summary.candidate_ns >= floor->second) continue;
    evaluation.verdict = Verdict::below_physics_floor;
    evaluation.reason = fmt::format(
        "case {}: {:.0f} ns is below {:.0f} ns, the least time in which this device "
        "moves the compulsory bytes",
        measurement.case_name, measurement.summary.candidate_ns, floor->second);
    evaluation = make_evaluation(std::move(evaluation));
    return;
  }
}

Evaluation CudaJudge::conduct(const TaskRequest& request, double timeout_s) {
  const std::int64_t started_unix_ms = clock_.unix_ms();
  std::error_code ignored;
  const std::filesystem::path images = options_.task_folder / "images";
  std::filesystem::create_directories(images, ignored);
  const Result<AssembledTask> assembled = assemble_task(request, images);
  if (!assembled.ok()) return engine_failure(request, assembled.error(), clock_);
  if (assembled->refused) return *assembled->refused;
  Result<TaskResult> result = run_task(*assembled, timeout_s);
  if (!result.ok()) return engine_failure(request, result.error(), clock_);
  Evaluation evaluation = std::move(result->evaluation);
  evaluation.started_unix_ms = started_unix_ms;
  evaluation.ended_unix_ms = clock_.unix_ms();
  hold_to_floors(evaluation);
  if (request.kind == TaskKind::check || request.kind == TaskKind::compare) {
    std::vector<Case> cases = request.check_cases;
    cases.insert(cases.end(), request.timed_cases.begin(), request.timed_cases.end());
    tally_pools(evaluation, cases);
    silence_private_cases(evaluation, cases);
  }
  for (const auto& [case_name, hash] : assembled->task.candidate.plan_of_case)
    if (assembled->files.plans.at(hash).uses_library()) {
      evaluation.weaknesses.push_back("it calls cuBLAS on case " + case_name +
                                      ": a rung of the ladder, which cannot ship");
      break;
    }
  return evaluation;
}

Evaluation CudaJudge::check(const Subject& subject, const std::vector<Case>& cases) {
  TaskRequest request = request_for(TaskKind::check, subject, Stage::manual);
  request.check_cases = cases;
  request.fixed_seed = options_.fixed_seed;
  return conduct(request, options_.compare_timeout_s);
}

Evaluation CudaJudge::screen(const Subject& candidate, const Subject& reference,
                             const std::vector<Case>& check_cases,
                             const std::vector<Case>& timed_cases) {
  TaskRequest request = request_for(TaskKind::compare, candidate, Stage::screen);
  request.reference = as_cuda(reference);
  request.check_cases = check_cases;
  request.timed_cases = timed_cases;
  request.rule = rules().screen;
  return conduct(request, options_.screen_timeout_s);
}

Result<SanitizerFindings> CudaJudge::sanitize(const TaskRequest& promoted) {
  TaskRequest request = promoted;
  request.kind = TaskKind::plain;
  request.reference.reset();
  // A timed case is watched only where it alone launches a kernel.
  request.check_cases.insert(request.check_cases.end(), request.timed_cases.begin(),
                             request.timed_cases.end());
  request.timed_cases.clear();
  const std::filesystem::path images = options_.task_folder / "images";
  ASSIGN_OR_RETURN(AssembledTask assembled, assemble_task(request, images));
  if (assembled.refused)
    return SanitizerFindings{{GateResult{.name = "plan",
                                         .verdict = assembled.refused->verdict,
                                         .sentence = assembled.refused->reason}},
                             assembled.refused->failed_case};
  ASSIGN_OR_RETURN(const TemporaryTask place, TemporaryTask::make(options_.task_folder));
  int written = 0;
  const auto write_task =
      [&](const std::vector<std::string>& cases) -> Result<std::filesystem::path> {
    const std::filesystem::path folder = place.folder() / fmt::format("task{}", written++);
    assembled.task.check_cases = cases;
    RETURN_IF_ERROR(write_task_folder(assembled.task, assembled.files, folder));
    return folder;
  };
  return pass_sanitizers({.sanitizer = options_.sanitizer,
                          .worker = options_.worker,
                          .device = options_.device,
                          .timeout_s = options_.compare_timeout_s,
                          .watch_initialisation = !calls_library(assembled),
                          .give_up = options_.give_up,
                          .say = options_.say,
                          .kept = options_.task_folder / "watched",
                          .launches_of =
                              [&](const std::string& case_name) {
                                return assembled.task.candidate.plan_of_case.at(case_name);
                              }},
                         choose_sanitizer_cases(assembled.task, assembled.files), write_task);
}

Evaluation CudaJudge::compare(const CompareRequest& compare) {
  TaskRequest request = request_for(TaskKind::compare, compare.candidate, compare.stage);
  request.reference = as_cuda(compare.reference);
  request.check_cases = compare.check_cases;
  request.timed_cases = compare.timed_cases;
  request.rule = compare.rule;
  request.rule.confidence = interval_confidence(compare.rule);  // a task knows of one claim alone
  request.rule.claims = 1;
  if (compare.stage != Stage::promote) return conduct(request, options_.compare_timeout_s);
  if (best_sandbox() == SandboxLevel::none)
    return engine_failure(request,
                          {ErrorCode::unavailable, "promote " + compare.candidate.id,
                           "without a sandbox a candidate may be checked, but not promoted",
                           "`kbeam doctor` says what this machine lacks"},
                          clock_);
  std::vector<GateResult> gates;
  if (!options_.sanitizer.empty()) {
    const Result<SanitizerFindings> found = sanitize(request);
    if (!found.ok()) return engine_failure(request, found.error(), clock_);
    gates = found->results;
    const GateResult& last = gates.back();
    if (last.verdict != Verdict::accepted) {
      Evaluation evaluation = engine_failure(request, {}, clock_);
      evaluation.verdict = last.verdict;
      evaluation.reason = fmt::format("{}: {}", last.name, last.sentence);
      evaluation.failed_case = found->failed_case;
      evaluation.gates = std::move(gates);
      return evaluation;
    }
  }
  Evaluation evaluation = conduct(request, options_.compare_timeout_s);
  if (gates.empty())
    evaluation.weaknesses.push_back(
        "compute-sanitizer is not installed: memory, races and initialisation were not watched");
  else if (std::ranges::find(gates, "initcheck", &GateResult::name) == gates.end())
    evaluation.weaknesses.push_back(
        "initcheck was not run: the plan calls cuBLAS, all of which it would instrument");
  evaluation.gates = std::move(gates);
  return evaluation;
}

MeasurementRules CudaJudge::rules() const {
  return device_rules();
}

// All cases in one task: a worker and its context cost more than most calls.
std::map<std::string, Outcome<Judge::CeilingTime>> CudaJudge::time_trusted(
    const TrustedRequest& asked) {
  std::map<std::string, Outcome<CeilingTime>> times;
  const auto all_failed = [&](Verdict verdict, const std::string& sentence) {
    for (const Case& the_case : asked.cases)
      times[the_case.name] = {std::nullopt, {verdict, sentence}};
    return times;
  };
  TaskRequest request = request_for(TaskKind::time_only, asked.subject, Stage::manual);
  request.candidate.may_use_libraries = true;
  request.timed_cases = asked.cases;
  request.longest_call_s = asked.longest_call_s;
  request.rule = {.name = "time only", .pairs_per_process = asked.repeats, .processes = 1};
  std::error_code ignored;
  const std::filesystem::path images = options_.task_folder / "images";
  std::filesystem::create_directories(images, ignored);
  const Result<AssembledTask> assembled = assemble_task(request, images);
  if (!assembled.ok()) return all_failed(Verdict::engine_failed, assembled.error().text());
  if (assembled->refused)
    return all_failed(assembled->refused->verdict, assembled->refused->reason);
  const Result<TaskResult> result = run_task(*assembled, options_.screen_timeout_s);
  if (!result.ok()) return all_failed(Verdict::engine_failed, result.error().text());
  all_failed(result->evaluation.verdict, result->evaluation.reason);
  for (const CheckReport& report : result->evaluation.checks)
    times[report.case_name] = {std::nullopt, {report.verdict, report.sentence}};
  for (const auto& [case_name, median_ns] : result->case_ns) {
    // What the plan noted, such as the work that a ceiling does.
    const std::string& plan_hash = assembled->task.candidate.plan_of_case.at(case_name);
    times[case_name] = {CeilingTime{median_ns, result->case_least_ns.at(case_name),
                                    assembled->files.plans.at(plan_hash).notes},
                        {}};
  }
  return times;
}

}  // namespace kbeam
