// The judge of CUDA candidates: plans them here, sandboxed and without a GPU, then has kbeam-worker
// run the evaluation as a task folder, the same that could be carried to another machine. No
// candidate host code ever runs in this process or in the worker.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "execute/evaluation_task.h"
#include "model/problem.h"
#include "session/judge.h"
#include "session/sanitizer_gate.h"
#include "session/task_assembly.h"

namespace kbeam {

struct CudaJudgeOptions {
  std::filesystem::path worker;  // the kbeam-worker binary
  PlannerOptions planner;
  std::filesystem::path problem_module;       // problem.cpp, built
  std::filesystem::path problem_cuda_module;  // problem.cu, built; empty: there is none
  std::filesystem::path task_folder;          // where tasks are written while they run
  int device = 0;
  std::string grade;
  std::optional<std::uint64_t> fixed_seed;  // replays one recorded input in check()
  double call_timeout_s = 10;
  double screen_timeout_s = 600;
  double compare_timeout_s = 3600;
  std::filesystem::path sanitizer;  // compute-sanitizer; empty: promotions say that it is missing
  std::function<bool()> give_up;
  std::function<void(std::string_view)> say;  // what a promotion's gate is at
};

class CudaJudge final : public Judge {
 public:
  CudaJudge(const Problem& problem, ProblemCode& code, CudaJudgeOptions options,
            const Clock& clock);

  Evaluation check(const Subject& subject, const std::vector<Case>& cases) override;
  Evaluation screen(const Subject& candidate, const Subject& reference,
                    const std::vector<Case>& check_cases,
                    const std::vector<Case>& timed_cases) override;
  Evaluation compare(const CompareRequest& request) override;
  std::map<std::string, Outcome<CeilingTime>> time_trusted(const TrustedRequest& request) override;
  MeasurementRules rules() const override;
  void set_noise(const std::string& case_name, double aa_noise) override;
  void set_floor(const std::string& case_name, double least_ns) override;

 private:
  TaskRequest request_for(TaskKind kind, const Subject& candidate, Stage stage) const;
  Evaluation conduct(const TaskRequest& request, double timeout_s);
  Result<TaskResult> run_task(const AssembledTask& assembled, double timeout_s);
  // What each sanitizer says of a candidate that is to be promoted.
  Result<SanitizerFindings> sanitize(const TaskRequest& promoted);
  void hold_to_floors(Evaluation& evaluation) const;

  const Problem& problem_;
  ProblemCode& code_;
  CudaJudgeOptions options_;
  const Clock& clock_;
  std::map<std::string, double> noise_;
  std::map<std::string, double> floor_ns_;
};

}  // namespace kbeam
