// The evaluation in hand: what is known so far, and the rules by which it fails. Starts no seat and
// reads no clock; the conductor does.
#pragma once

#include <string>

#include "execute/evaluation_task.h"
#include "execute/task_progress.h"
#include "target/cuda/seat.h"

namespace kbeam {

// What no kernel on the device can beat. 0: unknown.
struct DeviceCeilings {
  double bytes_per_s = 0;  // of device memory
  double flops_per_s = 0;  // of the fastest unit that could be used
  double l2_bytes = 0;     // so much of the outputs may still be in the cache when the clock stops
};

class Trial {
 public:
  Trial(const LoadedTask& task, std::optional<SavedProgress> progress, std::int64_t unix_ms);

  TaskProgress& now() { return saved_.now; }
  const SavedProgress& saved() const { return saved_; }
  TaskResult& result() { return saved_.now.so_far; }
  Evaluation& evaluation() { return saved_.now.so_far.evaluation; }
  bool failed() const { return saved_.now.so_far.evaluation.verdict != Verdict::accepted; }

  // Each returns false, so that callers can hand it on: the evaluation ends here.
  bool fail(Verdict verdict, std::string reason);
  // A private case gives pass or fail and nothing that could be tuned against.
  bool fail_on(const Case& the_case, Verdict verdict, const std::string& sentence);
  // Takes what a check found of the candidate; false when that ends the evaluation.
  bool take(const Case& the_case, CheckReport report, std::uint64_t input_seed);

  // The device that does the work from now on. When it is not the one that did it before, its
  // measurements are dropped (checks stay), and so is what no probe has confirmed there. True then.
  bool settle_on(const std::string& uuid);
  // What the seat says of its device.
  void describe(const SeatDevice& device);
  // Something that weakens what the evaluation says; once each.
  void note(const std::string& weakness);

  bool is_checked(const std::string& case_name) const;
  // The pairs of this case in this pair of processes are there: they come all at once.
  bool is_timed(const std::string& case_name, int process) const;
  Measurement& measurement_of(const std::string& case_name);

  // Something was done since the device last passed its probe.
  bool has_unconfirmed() const;
  void confirm() { saved_.last_good = saved_.now; }    // the device passed its probe
  void roll_back() { saved_.now = saved_.last_good; }  // it did not

  // Recomputes every summary from the samples.
  void summarise();
  void hold_to_floors(const DeviceCeilings& ceilings);

 private:
  const LoadedTask& task_;
  SavedProgress saved_;
};

const TaskCase& find_case(const EvaluationTask& task, const std::string& name);
// The least time in which a device with these ceilings can do the case; 0: unknown.
double floor_ns(const TaskCase& task_case, const DeviceCeilings& ceilings);
// How progress lines call a case: private ones have no name.
std::string shown_name(const Case& the_case);

}  // namespace kbeam
