// A candidate (or baseline) in its runner, ready to be called on the cases of a problem. Every call
// gets content that it has not seen, poisoned outputs and a cold cache, and every output is
// checked: there is no other call.
#pragma once

#include <kbeam/problem.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evaluation.h"
#include "model/problem.h"
#include "session/subject.h"
#include "target/cpu/runner.h"

namespace kbeam {

// Enough that neither addresses nor lines repeat from one call to the next, few enough to stay
// cheap to lay out.
inline constexpr int kSlots = 3;

// The row of the subject that serves the case.
std::size_t row_of(const Problem& problem, const Subject& subject, const Case& the_case);

struct CpuSeat {  // where and how strictly a subject runs
  std::filesystem::path runner;
  std::vector<int> cpus{1};  // as many workers
  SandboxLevel least_sandbox = SandboxLevel::rlimits;
  double call_timeout_s = 10;
};

struct CheckedCall {
  std::int64_t wall_ns = 0;
  CheckReport report;
};

class BenchProcess {
 public:
  // `cases` are all that will be prepared: memory is reserved for the largest.
  static Result<Outcome<std::unique_ptr<BenchProcess>>> start(const Problem& problem,
                                                              ProblemCode& code,
                                                              const Subject& subject,
                                                              const CpuSeat& seat,
                                                              std::span<const Case> cases);

  // Plans the case (once a process) and makes it the one that `call` runs. `base` must outlive the
  // calls.
  Outcome<bool> prepare(const Case& the_case, std::span<const TensorView> base);

  // Other base inputs for the case in hand.
  void use_base(std::span<const TensorView> base);

  // Freshens `base` with `key`, poisons, flushes, runs, inspects, checks. A wrong output is in the
  // report; a crash, hang or stray write is the failure.
  Outcome<CheckedCall> call(std::uint64_t key, const CheckRequest& request);
  // Trusted code only (ceilings): runs and times without a check.
  Outcome<std::int64_t> call_unchecked(std::uint64_t key);

  // The slot of the last call: what it was given and what it made of it, until the next call.
  const Slot& used_slot() const { return runner_->slot((next_slot_ + kSlots - 1) % kSlots); }
  const std::map<std::string, std::string>& notes() const { return notes_; }  // of the case in hand
  SandboxLevel sandbox() const { return runner_->sandbox(); }
  std::vector<std::string> weaknesses() const { return runner_->weaknesses(); }
  Outcome<CallTime> empty_call() { return runner_->empty_call(); }

 private:
  BenchProcess(const Problem& problem, ProblemCode& code, const Subject& subject,
               const CpuSeat& seat)
      : problem_(problem), code_(code), subject_(subject), seat_(seat) {}
  Outcome<std::int64_t> run(std::uint64_t key, int slot);

  const Problem& problem_;
  ProblemCode& code_;
  Subject subject_;
  CpuSeat seat_;
  std::unique_ptr<Runner> runner_;
  std::map<std::string, PlannedCase> plans_;
  Case case_;
  std::span<const TensorView> base_;
  std::map<std::string, std::string> notes_;
  int plan_id_ = -1;
  std::int64_t scratch_bytes_ = 0;
  int next_slot_ = 0;
};

}  // namespace kbeam
