// The order of work: list the cases, plan the problem's generator and checkers, plan both subjects,
// put the pieces together. A candidate whose plan fails is refused here, without any device.
#include "session/task_assembly.h"

#include <fmt/format.h>
#include <kbeam/problem.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "base/entropy.h"
#include "base/files.h"
#include "base/hash.h"
#include "problem/problem_library.h"
#include "target/cpu/runner.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

std::int64_t elements_of(const std::vector<TensorShape>& tensors) {
  std::int64_t elements = 0;
  for (const TensorShape& tensor : tensors) elements += tensor.elements();
  return elements;
}

std::string random_key() {
  Hasher hasher;
  for (int i = 0; i < 4; ++i) hasher.field(static_cast<std::int64_t>(random_bits()));
  return hasher.hex();
}

// What is asked of one subject's module for one case.
struct SubjectPlans {
  std::vector<std::size_t> cases;  // by place in the task's list
  std::vector<Planned> answers;
};

class Assembly {
 public:
  Assembly(const TaskRequest& request, fs::path image_folder)
      : request_(request), image_folder_(std::move(image_folder)) {}

  Result<AssembledTask> run() {
    RETURN_IF_ERROR(describe());
    list_cases();
    RETURN_IF_ERROR(plan_problem());
    ASSIGN_OR_RETURN(const SubjectPlans candidate, plan_subject(request_.candidate, all_cases()));
    if (!refuse(candidate)) {
      RETURN_IF_ERROR(take_subject(request_.candidate, candidate, made_.task.candidate));
      RETURN_IF_ERROR(add_reference());
    }
    const bool on_host =
        std::any_of(made_.task.cases.begin(), made_.task.cases.end(), [](const TaskCase& one) {
          return one.generate_plan.empty() || one.full_check_plan.empty();
        });
    if (on_host) made_.files.problem_module = request_.problem_module;
    return std::move(made_);
  }

 private:
  Result<void> describe() {
    ASSIGN_OR_RETURN(const DeviceDescription device,
                     read_device_description(request_.planner.device_description));
    EvaluationTask& task = made_.task;
    task.id = "task-" + random_letters(12);
    task.kind = request_.kind;
    task.problem = request_.problem->name;
    task.problem_hash = request_.problem->content_hash;
    task.grade = request_.grade;
    task.stage = request_.stage;
    task.candidate = {.id = request_.candidate.id,
                      .plan_of_case = {},
                      .not_supported = {},
                      .may_use_libraries = request_.candidate.may_use_libraries};
    for (const Case& one : request_.check_cases) task.check_cases.push_back(one.name);
    for (const Case& one : request_.timed_cases) task.timed_cases.push_back(one.name);
    task.rule = request_.rule;
    task.call_timeout_s = request_.call_timeout_s;
    task.longest_call_s = request_.longest_call_s;
    task.noise = request_.noise;
    task.fixed_seed = request_.fixed_seed;
    task.secret_seed = random_bits();
    task.seal_key = random_key();
    task.device_hash = device.hash;
    task.planned_for = {device.name, static_cast<int>(device.device.architecture),
                        static_cast<int>(device.device.multiprocessors)};
    task.planner_sandbox = best_sandbox();  // the planner takes the strongest there is
    return {};
  }

  void list_cases() {
    for (const std::vector<Case>* cases : {&request_.check_cases, &request_.timed_cases})
      for (const Case& the_case : *cases) {
        if (find_case(the_case.name) != made_.task.cases.size()) continue;
        TaskCase added{.the_case = the_case,
                       .tensors = tensor_shapes(*request_.problem, the_case.axes),
                       .generate_plan = {},
                       .quick_check_plan = {},
                       .full_check_plan = {}};
        const CaseAdapter view(the_case);
        added.flops = request_.code->flops(view);
        added.bytes = request_.code->bytes(view);
        made_.task.cases.push_back(std::move(added));
      }
  }
  std::size_t find_case(const std::string& name) const {
    const auto found = std::find_if(made_.task.cases.begin(), made_.task.cases.end(),
                                    [&](const TaskCase& one) { return one.the_case.name == name; });
    return static_cast<std::size_t>(found - made_.task.cases.begin());
  }
  std::vector<std::size_t> all_cases() const {
    std::vector<std::size_t> indices(made_.task.cases.size());
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
    return indices;
  }
  bool is_timed(const std::string& name) const {
    return std::any_of(request_.timed_cases.begin(), request_.timed_cases.end(),
                       [&](const Case& one) { return one.name == name; });
  }

  PlanRequest base_request(const TaskCase& task_case, PlanEntry entry) const {
    PlanRequest request;
    request.entry = entry;
    request.tensors = task_case.tensors;
    request.axes = task_case.the_case.axes;
    return request;
  }

  // Timed and large cases are generated and judged on the device. What problem.cu does not support
  // stays with the host's code.
  Result<void> plan_problem() {
    if (request_.problem_cuda_module.empty()) return {};
    struct Slot {
      TaskCase* task_case;
      std::string TaskCase::*field;
    };
    std::vector<PlanRequest> requests;
    std::vector<Slot> slots;
    const auto ask = [&](TaskCase& task_case, PlanEntry entry, const std::string& depth,
                         std::string TaskCase::*field) {
      PlanRequest request = base_request(task_case, entry);
      request.module = request_.problem_cuda_module;
      request.texts = {{"family", task_case.the_case.family}, {"grade", request_.grade}};
      if (!depth.empty()) request.texts["depth"] = depth;
      requests.push_back(std::move(request));
      slots.push_back({&task_case, field});
    };
    for (TaskCase& task_case : made_.task.cases) {
      const bool timed = is_timed(task_case.the_case.name);
      if (!timed && elements_of(task_case.tensors) <= request_.most_host_elements) continue;
      ask(task_case, PlanEntry::generate, "", &TaskCase::generate_plan);
      ask(task_case, PlanEntry::check, "full", &TaskCase::full_check_plan);
      if (timed) ask(task_case, PlanEntry::check, "quick", &TaskCase::quick_check_plan);
    }
    ASSIGN_OR_RETURN(const std::vector<Planned> answers,
                     make_launch_plans(request_.planner, requests));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      if (answers[i].verdict == Verdict::not_supported) continue;
      if (!answers[i].plan)
        return Error{ErrorCode::bad_input,
                     fmt::format("plan case {} of problem {}", slots[i].task_case->the_case.name,
                                 request_.problem->name),
                     "problem.cu " + answers[i].sentence, "mend problem.cu"};
      ASSIGN_OR_RETURN(slots[i].task_case->*slots[i].field, keep(answers[i]));
    }
    return {};
  }

  // Takes a plan and its image into the task; returns the plan's hash.
  Result<std::string> keep(const Planned& planned) {
    const std::string hash = launch_plan_hash(*planned.plan);
    made_.files.plans.emplace(hash, *planned.plan);
    const std::string& image = planned.plan->image_hash;
    if (!image.empty() && !made_.files.images.contains(image)) {
      const fs::path path = image_folder_ / (image + ".fatbin");
      std::error_code ignored;
      if (!fs::exists(path, ignored)) RETURN_IF_ERROR(write_file(path, planned.image));
      made_.files.images.emplace(image, path);
    }
    return hash;
  }

  // A shape that a row does not support goes on to the next one that may: regimes differ along one
  // axis, and a kernel may be made for few rows of many, say.
  Result<SubjectPlans> plan_subject(const CudaSubject& subject,
                                    std::vector<std::size_t> cases) const {
    Candidate rows;
    rows.rows = subject.rows;
    std::vector<std::vector<std::size_t>> orders;
    for (const std::size_t index : cases) {
      const auto& axes = made_.task.cases[index].the_case.axes;
      const auto value = axes.find(request_.problem->regime_axis);
      orders.push_back(value == axes.end() ? std::vector<std::size_t>{0}
                                           : rows.rows_to_ask(value->second));
    }
    std::vector<Planned> answers(cases.size());
    std::vector<std::size_t> open(cases.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    for (std::size_t turn = 0; !open.empty(); ++turn) {
      std::vector<PlanRequest> requests;
      for (const std::size_t i : open)
        requests.push_back(candidate_request(subject, orders[i][turn], made_.task.cases[cases[i]]));
      ASSIGN_OR_RETURN(std::vector<Planned> now, make_launch_plans(request_.planner, requests));
      std::vector<std::size_t> refused;
      for (std::size_t k = 0; k < open.size(); ++k) {
        const std::size_t i = open[k];
        const bool supported = now[k].verdict != Verdict::not_supported;
        // Where none of them does, its own row says why.
        if (supported || turn == 0) answers[i] = std::move(now[k]);
        if (!supported && turn + 1 < orders[i].size()) refused.push_back(i);
      }
      open = std::move(refused);
    }
    return SubjectPlans{std::move(cases), std::move(answers)};
  }
  PlanRequest candidate_request(const CudaSubject& subject, std::size_t row,
                                const TaskCase& task_case) const {
    PlanRequest request = base_request(task_case, PlanEntry::candidate);
    request.module = subject.modules.at(row);
    if (row < subject.kernels.size()) request.kernels = subject.kernels[row];
    request.may_use_libraries = subject.may_use_libraries;
    return request;
  }

  // Whether the candidate ends here: a plan failed, or no case at all is supported.
  bool refuse(const SubjectPlans& plans) {
    bool any_supported = false;
    for (std::size_t i = 0; i < plans.answers.size(); ++i) {
      const Planned& planned = plans.answers[i];
      const Case& the_case = made_.task.cases[plans.cases[i]].the_case;
      if (planned.verdict == Verdict::not_supported) continue;
      any_supported = true;
      if (planned.verdict != Verdict::accepted) {
        refuse_as(planned.verdict, planned.sentence, the_case);
        return true;
      }
      if (!request_.allow_conditions && planned.plan->uses_conditions()) {
        refuse_as(Verdict::bad_plan, "uses conditional nodes, which cannot ship", the_case);
        return true;
      }
    }
    if (any_supported || plans.answers.empty()) return false;
    refuse_as(Verdict::not_supported, "serves none of the cases: " + plans.answers[0].sentence,
              made_.task.cases[plans.cases[0]].the_case);
    return true;
  }

  // Of a private case nobody learns more than that it failed.
  void refuse_as(Verdict verdict, const std::string& sentence, const Case& the_case) {
    const bool is_private = the_case.pool != Pool::public_pool;
    Evaluation evaluation{.candidate_id = request_.candidate.id,
                          .stage = request_.stage,
                          .verdict = is_private ? Verdict::failed_private : verdict,
                          .reason = is_private ? "failed a private case"
                                               : fmt::format("case {} ({}): {}", the_case.name,
                                                             the_case.family, sentence),
                          .grade = request_.grade};
    evaluation.checks.push_back({.case_name = the_case.name,
                                 .verdict = verdict,
                                 .grade = request_.grade,
                                 .sentence = sentence});
    made_.refused = make_evaluation(std::move(evaluation));
  }

  Result<void> take_subject(const CudaSubject& subject, const SubjectPlans& plans,
                            TaskSubject& into) {
    into.id = subject.id;
    into.may_use_libraries = subject.may_use_libraries;
    for (std::size_t i = 0; i < plans.answers.size(); ++i) {
      const std::string& name = made_.task.cases[plans.cases[i]].the_case.name;
      if (plans.answers[i].verdict == Verdict::not_supported) {
        into.not_supported[name] = plans.answers[i].sentence;
        continue;
      }
      ASSIGN_OR_RETURN(into.plan_of_case[name], keep(plans.answers[i]));
    }
    return {};
  }

  // The reference runs only where something is timed; its failure is nobody's verdict.
  Result<void> add_reference() {
    if (!request_.reference) return {};
    std::vector<std::size_t> timed;
    for (const Case& one : request_.timed_cases) timed.push_back(find_case(one.name));
    ASSIGN_OR_RETURN(const SubjectPlans plans, plan_subject(*request_.reference, timed));
    for (std::size_t i = 0; i < plans.answers.size(); ++i) {
      const Planned& planned = plans.answers[i];
      if (planned.verdict == Verdict::accepted || planned.verdict == Verdict::not_supported)
        continue;
      return Error{
          ErrorCode::bad_input,
          fmt::format("plan case {} for the reference {}",
                      made_.task.cases[plans.cases[i]].the_case.name, request_.reference->id),
          planned.sentence, "compare with another reference"};
    }
    made_.task.reference.emplace();
    return take_subject(*request_.reference, plans, *made_.task.reference);
  }

  const TaskRequest& request_;
  const fs::path image_folder_;
  AssembledTask made_;
};

}  // namespace

Result<AssembledTask> assemble_task(const TaskRequest& request, const fs::path& image_folder) {
  CHECK(request.problem != nullptr && request.code != nullptr, "a task is of a problem");
  CHECK(!request.candidate.rows.empty() &&
            request.candidate.modules.size() == request.candidate.rows.size(),
        "a subject has one module a row");
  std::error_code trouble;
  fs::create_directories(image_folder, trouble);
  return Assembly(request, image_folder).run();
}

}  // namespace kbeam
