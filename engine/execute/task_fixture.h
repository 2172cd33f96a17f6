// A small but complete task for tests: three cases, two subjects, problem plans, an image.
#pragma once

#include <filesystem>
#include <string>

#include "base/files.h"
#include "execute/evaluation_task.h"
#include "measure/statistics.h"

namespace kbeam {

inline LaunchPlan plan_for_tests(const std::string& kernel) {
  LaunchPlan plan;
  plan.image_hash = "ab12";
  plan.buffers.push_back({.kind = BufferKind::input, .name = "A", .bytes = 64});
  plan.buffers.push_back({.kind = BufferKind::output, .name = "B", .bytes = 64});
  PlanNode node;
  node.kernel = kernel;
  node.kernel_name = kernel;
  PlanArgument argument;
  argument.kind = KBEAM_ADDRESS;
  argument.size = 8;
  argument.address = {0, 0};
  node.arguments.push_back(argument);
  plan.nodes.push_back(node);
  return plan;
}

struct TaskForTests {
  EvaluationTask task;
  TaskFiles files;
};

// The image and the module are written below `folder`.
inline TaskForTests task_for_tests(const std::filesystem::path& folder) {
  TaskForTests made;
  EvaluationTask& task = made.task;
  const auto add_plan = [&](const std::string& kernel) {
    const LaunchPlan plan = plan_for_tests(kernel);
    const std::string hash = launch_plan_hash(plan);
    made.files.plans[hash] = plan;
    return hash;
  };
  task.id = "task-1";
  task.problem = "scale";
  task.problem_hash = "77";
  task.grade = "fp32";
  task.stage = Stage::promote;
  task.rule = {.name = "promote", .pairs_per_process = 9, .processes = 3, .fresh_base = true};
  task.candidate.id = "candidate-1";
  task.reference = TaskSubject{.id = "reference-1"};
  for (const char* name : {"small", "hidden", "large"}) {
    TaskCase added;
    added.the_case = {.name = name, .axes = {{"n", 16}}, .family = "dense"};
    added.tensors = {{"A", KBEAM_INPUT, KBEAM_F32, {16}, {1}},
                     {"B", KBEAM_OUTPUT, KBEAM_F32, {16}, {1}}};
    added.flops = 1e6;
    added.bytes = 128;
    task.candidate.plan_of_case[name] = add_plan("candidate");
    task.reference->plan_of_case[name] = add_plan("reference");
    task.cases.push_back(added);
  }
  task.cases[1].the_case.pool = Pool::private_pool;
  task.cases[2].the_case.timed = true;
  task.cases[2].generate_plan = add_plan("generate");
  task.cases[2].quick_check_plan = add_plan("quick");
  task.cases[2].full_check_plan = add_plan("full");
  task.check_cases = {"small", "hidden"};
  task.timed_cases = {"large"};
  task.noise = {{"large", 0.001}};
  task.secret_seed = 0xfedcba9876543210;  // beyond the range of a signed number
  task.seal_key = "0123456789abcdef0123456789abcdef";
  task.device_hash = "88";
  task.planned_for = {"NVIDIA H200", 90, 132};
  task.planner_sandbox = SandboxLevel::landlock_seccomp;
  made.files.images["ab12"] = folder / "image";
  made.files.problem_module = folder / "problem.so";
  if (!write_file(folder / "image", std::string("fat\0binary", 10)).ok() ||
      !write_file(folder / "problem.so", "host code").ok())
    made.task.id.clear();  // no task: every test of it fails
  return made;
}

inline TaskResult result_for_tests(const LoadedTask& task) {
  TaskResult result;
  result.task_id = task.task.id;
  result.task_hash = task.task_hash;
  result.device = {"A GPU", "GPU-1", "580.1", 132, 90, {"pageable memory"}};
  Evaluation& evaluation = result.evaluation;
  evaluation.candidate_id = task.task.candidate.id;
  evaluation.stage = task.task.stage;
  evaluation.verdict = Verdict::accepted;
  evaluation.grade = task.task.grade;
  for (const std::string& name : task.task.check_cases) {
    CheckReport report{.case_name = name, .verdict = Verdict::accepted, .grade = "fp32"};
    report.figures.push_back({"error", 0.25, 1, "eps", "element 3"});
    report.outputs_checked = 1;
    evaluation.checks.push_back(report);
  }
  for (const std::string& name : task.task.timed_cases) {
    Measurement measurement{.case_name = name, .reference = task.task.reference->id};
    for (int pair = 0; pair < task.task.rule.pairs_per_process * task.task.rule.processes; ++pair) {
      measurement.samples.candidate_ns.push_back(1000 + pair % 3);
      measurement.samples.reference_ns.push_back(2000 + pair % 5);
      measurement.samples.candidate_first.push_back(static_cast<std::uint8_t>(pair % 2));
      measurement.samples.process.push_back(pair / task.task.rule.pairs_per_process);
    }
    measurement.stopping_rule = task.task.rule.text();
    measurement.stop_reason = "all pairs taken";
    measurement.noise_floor = 0.005;
    measurement.summary = summarise_pairs(measurement.samples, 0.99, 0.005);
    evaluation.measurements.push_back(measurement);
  }
  result.conditions.push_back({"large", 1, 1980, 3201, 44, 310.5, "none"});
  result.output_hashes = {{"small", "12ab"}};
  result.case_ns = {{"large", 1000.5}};
  result.case_samples_ns = {{"large", {1000, 1000.5, 1001}}};
  result.phase_s = {{"check", 1.5}};
  result.wall_s = 2.25;
  return result;
}

}  // namespace kbeam
