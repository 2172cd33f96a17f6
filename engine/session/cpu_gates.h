// The gates of a promotion on the CPU: the frozen candidate does the work of the checks again, in
// equal calls that must agree, and in builds that sanitizers watch. Times nothing.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "model/evaluation.h"
#include "model/problem.h"
#include "model/watch.h"
#include "session/bench_process.h"
#include "session/input_bank.h"
#include "session/subject.h"

namespace kbeam {

struct GateRequest {
  const Problem& problem;
  ProblemCode& code;
  InputBank& bank;
  const Clock& clock;
  const Subject& subject;
  CpuSeat seat;  // with every processor that the candidate may use
  std::string grade;
  std::uint64_t input_seed = 0;
  std::vector<Case> cases;
  std::function<Result<WatchedBuild>(const Row&, Watch)> build_watched;
  std::function<bool()> give_up;
};

struct GateFinding {
  RunnerFailure failure;  // the sentence names neither case nor gate
  std::optional<Case> where;
  std::string gate;
};

struct GateOutcome {
  std::vector<GateResult> passed;
  std::optional<GateFinding> finding;  // the first; later gates are not run
};

GateOutcome pass_gates(const GateRequest& request);

// Of the cases of a promotion those that are small, one for each shape, and for a row without one
// its smallest: what goes wrong in memory depends on shapes.
std::vector<Case> choose_gate_cases(const Problem& problem, const Subject& subject,
                                    const std::vector<Case>& cases);

}  // namespace kbeam
