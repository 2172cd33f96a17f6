// EvaluationTask and TaskResult as JSON, and the mistakes that a task can have.
#include "execute/evaluation_task.h"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "model/json_forms.h"
#include "model/json_walk.h"

namespace kbeam {

std::string_view to_string(TaskKind kind) {
  switch (kind) {
    case TaskKind::check:
      return "check";
    case TaskKind::compare:
      return "compare";
    case TaskKind::plain:
      return "plain";
    case TaskKind::time_only:
      return "time_only";
  }
  return "unknown";
}

// Enums that travel as words here. Those of other headers get words of their own.
static std::string_view to_string(Pool pool) {
  switch (pool) {
    case Pool::public_pool:
      return "public";
    case Pool::private_pool:
      return "private";
    case Pool::sealed_pool:
      return "sealed";
  }
  return "unknown";
}
enum class RoleWord { input, output };
static std::string_view to_string(RoleWord role) {
  return role == RoleWord::input ? "input" : "output";
}
enum class TypeWord { f32, f64, i32, i64 };
static std::string_view to_string(TypeWord type) {
  constexpr std::array<std::string_view, 4> kWords{"f32", "f64", "i32", "i64"};
  return kWords[static_cast<std::size_t>(type)];
}

static constexpr std::array kKinds{TaskKind::check, TaskKind::compare, TaskKind::plain,
                                   TaskKind::time_only};
static constexpr std::array kTaskStages{Stage::screen, Stage::confirm, Stage::promote,
                                        Stage::manual};
static constexpr std::array kPools{Pool::public_pool, Pool::private_pool, Pool::sealed_pool};
static constexpr std::array kRoleWords{RoleWord::input, RoleWord::output};
static constexpr std::array kTypeWords{TypeWord::f32, TypeWord::f64, TypeWord::i32, TypeWord::i64};
static constexpr std::array kTaskSandboxes{SandboxLevel::none, SandboxLevel::rlimits,
                                           SandboxLevel::landlock_seccomp,
                                           SandboxLevel::namespaces};
static const auto& every_value(SandboxLevel) {
  return kTaskSandboxes;
}
static const auto& every_value(TaskKind) {
  return kKinds;
}
static const auto& every_value(Stage) {
  return kTaskStages;
}
static const auto& every_value(Pool) {
  return kPools;
}
static const auto& every_value(RoleWord) {
  return kRoleWords;
}
static const auto& every_value(TypeWord) {
  return kTypeWords;
}

// A TensorShape with words for its C enums.
struct TensorForm {
  std::string name;
  RoleWord role = RoleWord::input;
  TypeWord type = TypeWord::f32;
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> strides;
};
// A TaskCase whose tensors have words.
struct TaskCaseForm {
  TaskCase rest;
  std::vector<TensorForm> tensors;
};
// An EvaluationTask likewise.
struct TaskForm {
  EvaluationTask rest;
  std::vector<TaskCaseForm> cases;
};

static void walk(auto& visit, Is<Case> auto& the_case) {
  visit("name", the_case.name);
  visit("axes", the_case.axes);
  visit("family", the_case.family);
  visit("pool", the_case.pool);
  visit("timed", the_case.timed);
}

static void walk(auto& visit, Is<TensorForm> auto& tensor) {
  visit("name", tensor.name);
  visit("role", tensor.role);
  visit("type", tensor.type);
  visit("dims", tensor.dims);
  visit("strides", tensor.strides);
}

static void walk(auto& visit, Is<TaskCaseForm> auto& form) {
  visit("case", form.rest.the_case);
  visit("tensors", form.tensors);
  visit("generate_plan", form.rest.generate_plan);
  visit("quick_check_plan", form.rest.quick_check_plan);
  visit("full_check_plan", form.rest.full_check_plan);
  visit("flops", form.rest.flops);
  visit("bytes", form.rest.bytes);
}

static void walk(auto& visit, Is<TaskSubject> auto& subject) {
  visit("id", subject.id);
  visit("plan_of_case", subject.plan_of_case);
  visit("not_supported", subject.not_supported);
  visit("may_use_libraries", subject.may_use_libraries);
}

static void walk(auto& visit, Is<StoppingRule> auto& rule) {
  visit("name", rule.name);
  visit("pairs_per_process", rule.pairs_per_process);
  visit("processes", rule.processes);
  visit("confidence", rule.confidence);
  visit("fresh_base", rule.fresh_base);
  visit("clear_ratio", rule.clear_ratio);
  visit("futile_speedup", rule.futile_speedup);
  visit("pairs_when_clear", rule.pairs_when_clear);
  visit("pairs_clear_ratio", rule.pairs_clear_ratio);
}

static void walk(auto& visit, Is<PlannedDevice> auto& device) {
  visit("name", device.name);
  visit("architecture", device.architecture);
  visit("multiprocessors", device.multiprocessors);
}

static void walk(auto& visit, Is<TaskForm> auto& form) {
  auto& task = form.rest;
  visit("id", task.id);
  visit("kind", task.kind);
  visit("problem", task.problem);
  visit("problem_hash", task.problem_hash);
  visit("grade", task.grade);
  visit("stage", task.stage);
  visit("candidate", task.candidate);
  visit("reference", task.reference);
  visit("cases", form.cases);
  visit("check_cases", task.check_cases);
  visit("timed_cases", task.timed_cases);
  visit("rule", task.rule);
  visit("call_timeout_s", task.call_timeout_s);
  visit("longest_call_s", task.longest_call_s);
  visit("noise", task.noise);
  visit("fixed_seed", task.fixed_seed);
  visit("secret_seed", task.secret_seed);
  visit("seal_key", task.seal_key);
  visit("device_hash", task.device_hash);
  visit("planned_for", task.planned_for);
  visit("planner_sandbox", task.planner_sandbox);
}

static void walk(auto& visit, Is<DeviceFacts> auto& device) {
  visit("name", device.name);
  visit("uuid", device.uuid);
  visit("driver", device.driver);
  visit("multiprocessors", device.multiprocessors);
  visit("architecture", device.architecture);
  visit("weaknesses", device.weaknesses);
}

static void walk(auto& visit, Is<DeviceCondition> auto& condition) {
  visit("case_name", condition.case_name);
  visit("process", condition.process);
  visit("sm_clock_mhz", condition.sm_clock_mhz);
  visit("memory_clock_mhz", condition.memory_clock_mhz);
  visit("temperature_c", condition.temperature_c);
  visit("power_w", condition.power_w);
  visit("throttle_reasons", condition.throttle_reasons);
}

// All of a result but its evaluation, whose form is the model's.
static void walk(auto& visit, Is<TaskResult> auto& result) {
  visit("task_id", result.task_id);
  visit("task_hash", result.task_hash);
  visit("device", result.device);
  visit("conditions", result.conditions);
  visit("output_hashes", result.output_hashes);
  visit("case_ns", result.case_ns);
  visit("case_least_ns", result.case_least_ns);
  visit("case_samples_ns", result.case_samples_ns);
  visit("phase_s", result.phase_s);
  visit("wall_s", result.wall_s);
  visit("device_trouble", result.device_trouble);
}

static_assert(static_cast<int>(RoleWord::output) == KBEAM_OUTPUT &&
              static_cast<int>(TypeWord::i64) == KBEAM_I64 &&
              static_cast<int>(TypeWord::i32) == KBEAM_I32);

static TensorForm form_of(const TensorShape& shape) {
  return {shape.name, static_cast<RoleWord>(shape.role), static_cast<TypeWord>(shape.type),
          shape.dims, shape.strides};
}

static TensorShape shape_of(TensorForm form) {
  return {std::move(form.name), static_cast<kbeam_role>(form.role),
          static_cast<kbeam_element_type>(form.type), std::move(form.dims),
          std::move(form.strides)};
}

Json to_json(const EvaluationTask& task) {
  TaskForm form{task, {}};
  for (const TaskCase& task_case : task.cases) {
    TaskCaseForm& added = form.cases.emplace_back(TaskCaseForm{task_case, {}});
    for (const TensorShape& shape : task_case.tensors) added.tensors.push_back(form_of(shape));
  }
  return write_value(form);
}

Result<EvaluationTask> evaluation_task_from_json(const Json& json) {
  ASSIGN_OR_RETURN(TaskForm form, read_noun<TaskForm>(json, "an evaluation task"));
  EvaluationTask task = std::move(form.rest);
  for (TaskCaseForm& of_case : form.cases) {
    TaskCase& added = task.cases.emplace_back(std::move(of_case.rest));
    for (TensorForm& tensor : of_case.tensors) added.tensors.push_back(shape_of(std::move(tensor)));
  }
  return task;
}

Json to_json(const TaskResult& result) {
  Json json = write_value(result);
  json["evaluation"] = to_json(result.evaluation);
  return json;
}

Result<TaskResult> task_result_from_json(const Json& json) {
  ASSIGN_OR_RETURN(TaskResult result, read_noun<TaskResult>(json, "a task's result"));
  const auto found = json.find("evaluation");
  if (found == json.end())
    return Error{ErrorCode::corrupt, "read a task's result from JSON",
                 "field 'evaluation' is missing",
                 "the record was damaged or written by another version of kbeam"};
  Result<Evaluation> evaluation = evaluation_from_json(*found);
  if (!evaluation.ok()) {
    Error error = evaluation.error();
    error.happened = "in field 'evaluation': " + error.happened;
    return error;
  }
  result.evaluation = std::move(*evaluation);
  return result;
}

// ---- what no hash can find ----

namespace {

class TaskInspection {
 public:
  explicit TaskInspection(const EvaluationTask& task) : task_(task) {}

  std::vector<std::string> run() {
    if (task_.id.empty() ||
        task_.id.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                   "._-") != std::string::npos ||
        task_.id.front() == '.')
      say("field 'id' should be letters, digits, '.', '_' and '-', but is '" + task_.id + "'");
    if (task_.seal_key.empty()) say("field 'seal_key' is empty: a result could not be sealed");
    for (const TaskCase& task_case : task_.cases)
      if (!names_.insert(task_case.the_case.name).second)
        say("case '" + task_case.the_case.name + "' occurs twice");
    const bool times = task_.kind == TaskKind::compare || task_.kind == TaskKind::time_only;
    if (task_.kind != TaskKind::time_only) names_known("check_cases", task_.check_cases);
    if (times) names_known("timed_cases", task_.timed_cases);
    if (task_.kind != TaskKind::time_only && task_.check_cases.empty() && !times)
      say("field 'check_cases' is empty: there is nothing to do");
    if (times && task_.timed_cases.empty()) say("field 'timed_cases' is empty");
    if (times && (task_.rule.pairs_per_process < 1 || task_.rule.processes < 1))
      say("field 'rule' asks for no pair or no process");
    if (task_.kind == TaskKind::compare && !task_.reference)
      say("field 'reference' is missing: kind compare needs one");
    if (!(task_.call_timeout_s > 0)) say("field 'call_timeout_s' should be above 0");
    served("candidate", task_.candidate, task_.check_cases);
    served("candidate", task_.candidate, task_.timed_cases);
    if (task_.reference) served("reference", *task_.reference, task_.timed_cases);
    return std::move(mistakes_);
  }

 private:
  void say(std::string mistake) { mistakes_.push_back(std::move(mistake)); }

  void names_known(const std::string& field, const std::vector<std::string>& named) {
    std::set<std::string> seen;
    for (const std::string& name : named) {
      if (!names_.contains(name)) say(fmt::format("field '{}': no case '{}'", field, name));
      if (!seen.insert(name).second) say(fmt::format("field '{}': '{}' twice", field, name));
    }
  }
  // Every case has a plan, or the reason why there is none.
  void served(const std::string& who, const TaskSubject& subject,
              const std::vector<std::string>& named) {
    for (const std::string& name : named)
      if (!subject.plan_of_case.contains(name) && !subject.not_supported.contains(name))
        say(fmt::format("the {} has neither a plan for case '{}' nor a reason", who, name));
  }

  const EvaluationTask& task_;
  std::set<std::string> names_;
  std::vector<std::string> mistakes_;
};

}  // namespace

std::vector<std::string> find_task_mistakes(const EvaluationTask& task) {
  return TaskInspection(task).run();
}

}  // namespace kbeam
