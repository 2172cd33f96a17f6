// Everything that a GPU needs for one evaluation, from built modules: plans of every case for both
// subjects and for the problem's own generator and checker. Runs no kernel and needs no GPU;
// writing the folder and running the task is execute's job.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "execute/evaluation_task.h"
#include "measure/stopping_rule.h"
#include "model/candidate.h"
#include "model/evaluation.h"
#include "model/problem.h"
#include "model/verdict.h"
#include "target/cuda/planner.h"

namespace kbeam {

class ProblemCode;

// A candidate or baseline of .cu files, built: one module a row.
struct CudaSubject {
  std::string id;
  std::vector<Row> rows;  // which row serves which value of the regime axis
  std::vector<std::filesystem::path> modules;
  // What the compiler reported, one map a row; may be left out: the image says it too.
  std::vector<std::map<std::string, KernelResources>> kernels;
  bool may_use_libraries = false;  // baselines and rungs: gemm and vendor nodes
};

struct TaskRequest {
  const Problem* problem = nullptr;
  ProblemCode* code = nullptr;  // for the flops and bytes of a case
  PlannerOptions planner;

  TaskKind kind = TaskKind::compare;
  CudaSubject candidate;
  std::optional<CudaSubject> reference;
  std::vector<Case> check_cases;
  std::vector<Case> timed_cases;

  std::filesystem::path problem_module;       // problem.cpp, built
  std::filesystem::path problem_cuda_module;  // problem.cu, built; empty: there is none
  // A case with more elements in all its tensors than this is generated and checked on the GPU when
  // there is a problem.cu; every timed case is.
  std::int64_t most_host_elements = 1'000'000;

  std::string grade;
  Stage stage = Stage::manual;
  StoppingRule rule;
  double call_timeout_s = 10;
  std::map<std::string, double> longest_call_s;  // time_only, by case
  std::map<std::string, double> noise;
  std::optional<std::uint64_t> fixed_seed;
  bool allow_conditions = true;  // false where the plan must be able to ship
};

// A task that can be written and run; or, where a plan failed, the evaluation that says so: nothing
// needs a GPU then.
struct AssembledTask {
  EvaluationTask task;
  TaskFiles files;
  std::optional<Evaluation> refused;
};

// Result fails when the engine cannot work, and when the problem's own plans or the reference's
// fail: that is nobody's candidate.
//
// `image_folder` receives the device images under their hash; it must outlive the task's writing.
Result<AssembledTask> assemble_task(const TaskRequest& request,
                                    const std::filesystem::path& image_folder);

}  // namespace kbeam
