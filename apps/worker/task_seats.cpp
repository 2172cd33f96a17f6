#include "apps/worker/task_seats.h"

#include "apps/worker/trial.h"

namespace kbeam {

SeatOptions seat_options(const LoadedTask& task, const TaskSubject& subject,
                         const std::vector<std::string>& case_names) {
  const auto plan = [&](const std::string& hash) {
    return hash.empty() ? nullptr : &task.plans.at(hash);
  };
  SeatOptions options;
  options.images = task.images;
  options.problem_module = task.problem_module;
  options.grade = task.task.grade;
  options.call_timeout_s = task.task.call_timeout_s;
  options.may_use_libraries = subject.may_use_libraries;
  for (const std::string& name : case_names) {
    const TaskCase& task_case = find_case(task.task, name);
    options.cases.push_back({task_case.the_case, task_case.tensors,
                             plan(subject.plan_of_case.at(name)), plan(task_case.generate_plan),
                             plan(task_case.quick_check_plan), plan(task_case.full_check_plan)});
  }
  return options;
}

}  // namespace kbeam
