// One candidate in its own sandboxed process, seen from the judge. The candidate runs only between
// resume and a stop that the kernel confirms; while it is stopped the judge fills inputs, poisons
// outputs and checks results. The clock, the oracle and the verdict never enter that process.
#pragma once

#include <kbeam/problem.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evaluation.h"
#include "model/problem.h"
#include "model/verdict.h"

namespace kbeam {

struct RunnerOptions {
  std::filesystem::path runner;                // the kbeam-runner binary
  std::vector<std::filesystem::path> modules;  // one shared object a row
  int workers = 1;
  std::vector<int> cpus;         // the candidate's; pinned before it loads
  std::int64_t input_bytes = 0;  // capacity for the inputs of the largest case, all slots together
  std::int64_t output_bytes = 0;
  std::int64_t scratch_bytes = 1LL << 30;  // the most that a plan may ask for
  std::int64_t memory_bytes = 4LL << 30;   // the most that the process may map
  double load_timeout_s = 10;
  SandboxLevel least_sandbox = SandboxLevel::rlimits;  // weaker than this: refuse to start
  bool may_use_libraries = false;  // baselines: OpenBLAS reads /proc/cpuinfo and its own files
};

// Why a call gave no result. `sentence` is for people: what happened, in which call.
struct RunnerFailure {
  Verdict verdict = Verdict::engine_failed;
  std::string sentence;
};

struct PlannedCase {
  int plan_id = -1;
  std::int64_t scratch_bytes = 0;
  std::map<std::string, std::string> notes;  // the candidate's words: shown, never trusted
};

// One place for the tensors of a case: inputs that the candidate can only read, outputs between
// guard zones. Several slots rotate, so that neither addresses nor cache lines repeat from call to
// call.
struct Slot {
  std::vector<TensorView> inputs;  // the judge's own mapping
  std::vector<TensorView> outputs;
};

template <typename T>
struct Outcome {
  std::optional<T> value;
  RunnerFailure failure;
  bool ok() const { return value.has_value(); }
};

struct CallTime {
  std::int64_t wall_ns = 0;  // from resume to the confirmed stop, on the judge's clock
};

class Runner {
 public:
  // Starts, sandboxes and loads; the process is stopped when this returns. A module that cannot be
  // loaded or misbehaves while loading is a RunnerFailure, not an engine error.
  static Result<Outcome<std::unique_ptr<Runner>>> start(const RunnerOptions& options);
  virtual ~Runner() = default;  // kills the process and everything that it started

  virtual SandboxLevel sandbox() const = 0;
  virtual std::vector<std::string> weaknesses() const = 0;

  // Lets module `row` plan one shape, twice; a plan that differs is bad_plan.
  virtual Outcome<PlannedCase> plan(std::size_t row, const std::vector<TensorShape>& tensors,
                                    const AxisValues& axes, double timeout_s) = 0;

  // Lays the tensors of the planned case out in `count` slots. Slots of an earlier lay_out are
  // gone.
  virtual Result<void> lay_out(const std::vector<TensorShape>& tensors, int count) = 0;
  virtual const Slot& slot(int index) const = 0;

  // Fills the outputs of the slot and its guard zones with NaN patterns drawn from `key`.
  virtual void poison(int slot, std::uint64_t key) = 0;
  // Moves the slot's lines out of every cache (clflush; without it, weaknesses() says so).
  virtual void flush(int slot) = 0;
  // After a call: guard zones whole, inputs as the judge wrote them (`input_hash` from
  // hash_inputs).
  virtual std::optional<RunnerFailure> inspect(int slot) = 0;
  // The first output element that still holds poison, or nothing: "H element 17 was never written".
  virtual std::optional<std::string> find_unwritten(int slot) const = 0;

  // Overwrites the scratch memory of a plan with garbage drawn from `key`: a call finds nothing of
  // an earlier one there. Done by the judge, while the process is stopped, on the processor of the
  // candidate: its scratch is warm, as it is for a caller that keeps a workspace.
  virtual void refill_scratch(std::int64_t bytes, std::uint64_t key) = 0;
  // Runs the plan on the slot. A hang, crash, early exit or forbidden system call is a
  // RunnerFailure, and the runner cannot be used again.
  virtual Outcome<CallTime> call(int plan_id, int slot, double timeout_s) = 0;
  // The same without steps: what a bracket costs here.
  virtual Outcome<CallTime> empty_call() = 0;
};

// What this machine offers, strongest first, probed once; less where KBEAM_SANDBOX asks for less.
SandboxLevel best_sandbox();

}  // namespace kbeam
