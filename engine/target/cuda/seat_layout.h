// Where everything of one case lies: the candidate's buffers between guard zones, and the judge's
// pristine inputs, snapshots, control block, figures and plan scratch. Binds the symbols of the
// case's plans to these addresses; launches nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/launch_plan.h"
#include "model/problem.h"
#include "target/cuda/device_memory.h"

namespace kbeam {

// A SeatCase with its plans, as the seat's process owns it.
struct SessionCase {
  Case the_case;
  std::vector<TensorShape> tensors;
  LaunchPlan subject;
  std::optional<LaunchPlan> generate;
  std::optional<LaunchPlan> quick_check;
  std::optional<LaunchPlan> full_check;
};

// Buffers of the subject's plan that are no tensors.
struct OwnBuffer {
  int buffer = -1;  // index in the plan
  GuardedBuffer memory;
};

class CaseLayout {
 public:
  // Takes the memory of the case; judge.commit() is the caller's, after its own places.
  CaseLayout(const SessionCase& the_case, CandidateMemory& candidate, JudgeMemory& judge);

  // By the order of the case's tensors; pristine is 0 for outputs, snapshot 0 for inputs.
  const std::vector<GuardedBuffer>& tensors() const { return tensors_; }
  const std::vector<CUdeviceptr>& pristine() const { return pristine_; }
  const std::vector<CUdeviceptr>& snapshot() const { return snapshot_; }
  const std::vector<OwnBuffer>& own_buffers() const { return own_; }
  CUdeviceptr control() const { return control_; }
  CUdeviceptr figures() const { return figures_; }

  const std::vector<CUdeviceptr>& subject() const { return subject_; }
  // A problem plan on these tensors: the candidate's inputs (they are being generated), or the
  // judge's copies. Its scratch and tables are the same on both.
  std::vector<CUdeviceptr> bind_to_candidate(const LaunchPlan& plan) const;
  std::vector<CUdeviceptr> bind_to_judge(const LaunchPlan& plan) const;

  // "" or why the plan and the case do not belong together.
  static std::string find_mistake(const SessionCase& the_case);

 private:
  void place_plan(const LaunchPlan& plan, JudgeMemory& judge);
  std::vector<CUdeviceptr> bind(const LaunchPlan& plan,
                                const std::vector<CUdeviceptr>& tensors) const;

  const SessionCase& case_;
  std::vector<GuardedBuffer> tensors_;
  std::vector<CUdeviceptr> pristine_;
  std::vector<CUdeviceptr> snapshot_;
  std::vector<OwnBuffer> own_;
  std::vector<CUdeviceptr> subject_;
  CUdeviceptr control_ = 0;
  CUdeviceptr figures_ = 0;
  std::map<std::pair<const LaunchPlan*, std::size_t>, CUdeviceptr> judge_own_;
};

}  // namespace kbeam
