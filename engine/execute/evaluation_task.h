// All that one evaluation on a GPU needs, as a folder that can be carried to another machine, and
// the sealed result that comes back. Holds plans and images, never candidate host code.
//
//   FOLDER/task.json            this noun
//   FOLDER/plans/HASH.json      launch plans, by launch_plan_hash
//   FOLDER/images/HASH.fatbin   device code, by content
//   FOLDER/problem/problem.so   the problem's own host code: inputs and checks of small cases
//   FOLDER/result.json          written by the worker, atomically, at the end
//   FOLDER/progress.json        what is done so far: a killed worker goes on from here
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "measure/stopping_rule.h"
#include "model/evaluation.h"
#include "model/launch_plan.h"
#include "model/problem.h"

namespace kbeam {

// Which plan serves which case. A case without a plan is not supported by the subject; `reason`
// says why.
struct TaskSubject {
  std::string id;
  std::map<std::string, std::string> plan_of_case;   // case name -> plan hash
  std::map<std::string, std::string> not_supported;  // case name -> why
  bool may_use_libraries = false;                    // baselines and rungs: gemm and vendor nodes
};

// A case and how it is generated and checked. Large cases have plans of problem.cu; small ones use
// problem.so on the host.
struct TaskCase {
  Case the_case;
  std::vector<TensorShape> tensors;
  std::string generate_plan;     // plan hash; empty: on the host
  std::string quick_check_plan;  // empty: the full check
  std::string full_check_plan;   // empty: on the host
  double flops = 0;
  double bytes = 0;  // compulsory traffic of one call
};

enum class TaskKind {
  check,     // every check case once, in full
  compare,   // check cases, then pairs of candidate and reference on the timed cases
  plain,     // every check case once, outputs hashed, no timing: what a sanitizer watches
  time_only  // trusted subjects: baselines and ceilings; a case that cannot be timed is a check
             // report that says why
};

// The device that plans were made for: on another one they may not fit, or fit badly.
struct PlannedDevice {
  std::string name;
  int architecture = 0;  // 90 for compute capability 9.0
  int multiprocessors = 0;
};

struct EvaluationTask {
  std::string id;  // unique
  TaskKind kind = TaskKind::compare;
  std::string problem;
  std::string problem_hash;
  std::string grade;
  Stage stage = Stage::manual;
  TaskSubject candidate;
  std::optional<TaskSubject> reference;
  std::vector<TaskCase> cases;           // all, by name
  std::vector<std::string> check_cases;  // checked in full before anything is timed
  std::vector<std::string> timed_cases;
  StoppingRule rule;
  double call_timeout_s = 10;
  // time_only, by case: a call that takes longer is of no interest and is not repeated.
  std::map<std::string, double> longest_call_s;
  std::map<std::string, double> noise;      // case -> how far the A/A control was from 1
  std::optional<std::uint64_t> fixed_seed;  // replays one recorded input
  std::uint64_t secret_seed = 0;  // mixed with the worker's own entropy where a verdict counts
  std::string seal_key;           // hexadecimal; results are sealed with it
  std::string device_hash;        // of the device description that the plans saw
  PlannedDevice planned_for;      // what that description is of
  // Behind which the plans were made: the candidate's host code never runs anywhere else.
  SandboxLevel planner_sandbox = SandboxLevel::none;
};

struct DeviceFacts {
  std::string name;
  std::string uuid;
  std::string driver;
  int multiprocessors = 0;
  int architecture = 0;
  std::vector<std::string> weaknesses;  // of the isolation on that machine, in words
};

// Clock and throttle facts beside the samples of one case.
struct DeviceCondition {
  std::string case_name;
  int process = 0;
  double sm_clock_mhz = 0;
  double memory_clock_mhz = 0;
  double temperature_c = 0;
  double power_w = 0;
  std::string throttle_reasons;  // "none" or names
};

struct TaskResult {
  std::string task_id;
  std::string task_hash;  // of task.json as the worker read it
  DeviceFacts device;
  Evaluation evaluation;
  std::vector<DeviceCondition> conditions;
  std::map<std::string, std::string> output_hashes;            // plain: case -> hash of the outputs
  std::map<std::string, double> case_ns;                       // time_only: medians
  std::map<std::string, std::vector<double>> case_samples_ns;  // time_only: what they are from
  std::map<std::string, double> case_least_ns;                 // time_only: the quickest call
  std::map<std::string, double> phase_s;  // where the wall time went: load, check, time
  double wall_s = 0;
  std::string device_trouble;  // non-empty: the device failed its probe; results are void
};

Json to_json(const EvaluationTask& task);
Result<EvaluationTask> evaluation_task_from_json(const Json& json);
Json to_json(const TaskResult& result);
Result<TaskResult> task_result_from_json(const Json& json);

// What a task folder is made of, before it is written.
struct TaskFiles {
  std::map<std::string, LaunchPlan> plans;              // by hash
  std::map<std::string, std::filesystem::path> images;  // by hash
  std::filesystem::path problem_module;                 // empty: no case needs it
};

// Writes the folder completely or not at all. A folder that is there already is left alone: error.
Result<void> write_task_folder(const EvaluationTask& task, const TaskFiles& files,
                               const std::filesystem::path& folder);
// Every file is read back by the hash that task.json has of it: a changed byte is refused by name.
struct LoadedTask {
  EvaluationTask task;
  std::string task_hash;
  std::map<std::string, LaunchPlan> plans;
  std::map<std::string, std::filesystem::path> images;
  std::filesystem::path problem_module;
};
Result<LoadedTask> read_task_folder(const std::filesystem::path& folder);

// Seals with HMAC-SHA256 under the task's key: finds accidents and mix-ups, not a hostile machine
// (that one has the key).
Result<void> write_result(const EvaluationTask& task, const TaskResult& result,
                          const std::filesystem::path& folder);
// Refuses, with the reason: truncated, changed, of another task, unsealed; what no worker writes.
Result<TaskResult> read_result(const LoadedTask& task, const std::filesystem::path& folder);

// The mistakes in a task that no hash can find: cases without plans, names that occur twice.
std::vector<std::string> find_task_mistakes(const EvaluationTask& task);

// What a result says that no worker says of this task, sealed or not: times that are none, pairs
// that are not, cases that it was not asked for or left out, a verdict that its own reports deny.
// The first few; empty: it can stand.
std::vector<std::string> find_result_mistakes(const EvaluationTask& task, const TaskResult& result);
// Of the times in it alone: what holds of an unfinished result, too.
std::vector<std::string> find_sample_mistakes(const EvaluationTask& task, const TaskResult& result);

inline constexpr std::string_view kTaskFile = "task.json";
inline constexpr std::string_view kResultFile = "result.json";
inline constexpr std::string_view kProgressFile = "progress.json";

std::string_view to_string(TaskKind kind);

}  // namespace kbeam
