// Conducts one task on one device: which seat does what, in which order, on which inputs, and what
// follows from it. The GPU's twin of session/cpu_judge, pure logic over seats that others make: no
// driver, no file, no clock of its own. Goes on from saved progress; ends early when its time is
// up.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/worker/trial.h"
#include "base/clock.h"
#include "base/result.h"
#include "execute/evaluation_task.h"
#include "execute/task_progress.h"
#include "target/cuda/seat.h"

namespace kbeam {

// A witness runs nothing but the probe.
enum class SeatRole { witness, candidate, reference };

struct ConductorTools {
  std::function<Result<std::unique_ptr<Seat>>(SeatRole, const SeatOptions&,
                                              std::optional<SeatFailure>&)>
      start_seat;
  std::function<Result<void>(const SavedProgress&)> save;
  std::function<std::uint64_t()> random;
  std::function<std::optional<DeviceCondition>()> read_condition;  // may be empty
  std::function<void(const std::string& line)> say;                // progress; may be empty
};

struct ConductorOptions {
  std::filesystem::path worker;  // what a seat is started from
  int device = 0;
  std::string device_uuid;  // of that device, which the caller has locked
  double pieces_s = std::numeric_limits<double>::infinity();
  PlannedDevice device_is;  // what it is; architecture 0: the driver does not say
  DeviceCeilings ceilings;
  std::vector<std::string> weaknesses;  // of the machine, known before anything runs
  std::vector<std::string> wrapper;     // kind plain: started around the candidate's seat
};

// How a call of run() ended.
struct Conducted {
  enum class End {
    finished,  // `result` is the task's result
    paused,    // time is up: call again
    stuck      // time is up, and not one case was done in it
  } end = End::finished;
  TaskResult result;
  std::optional<SeatEnding> ending;  // of a candidate's seat that ran under a wrapper
};

class Conductor {
 public:
  Conductor(const LoadedTask& task, ConductorOptions options, ConductorTools tools,
            const Clock& clock);
  // Fails only where progress cannot be saved.
  Result<Conducted> run(std::optional<SavedProgress> progress);

 private:
  class Phase;

  // Each returns whether the evaluation may go on.
  bool fits_device();
  bool skip_unsupported();
  bool run_checks();
  bool run_compare();
  bool run_time_only();
  bool run_round(int process);
  bool open_candidate();
  bool open_reference();
  bool check_case(const TaskCase& task_case);
  bool time_case(const TaskCase& task_case, int process);
  // `beyond_events_ns`, of candidate and reference: by how much the host's clock saw more than the
  // events allow, in the call where it was least.
  bool take_pairs(const TaskCase& task_case, int process, PairedSamples& samples,
                  double (&beyond_events_ns)[2]);
  bool time_trusted_case(const TaskCase& task_case);
  bool leave_untimed(const TaskCase& task_case, Verdict verdict, const std::string& sentence);
  bool clocks_agree(Seat& seat, const TaskCase& task_case, double event_ns,
                    double beyond_events_ns);
  bool clocks_disagree(Seat& seat, const TaskCase& task_case, double event_ns, double host_ns);
  bool call(Seat& seat, const TaskCase& task_case, const SeatCallRequest& request,
            SeatCall& result);
  bool prepare(Seat& seat, const TaskCase& task_case);
  bool seat_failed(const Seat& seat, const Case& the_case, const SeatFailure& failure);
  bool confirm_device();
  bool device_is_sound();
  bool void_device(const std::string& evidence);
  bool may_start_unit();
  bool out_of_time() const;
  bool unit_done();
  void save();
  void note_condition(const std::string& case_name, int process);
  void finish();

  SeatOptions options_for(const TaskSubject& subject, const std::vector<std::string>& names) const;
  std::vector<std::string> supported(const std::vector<std::string>& names) const;
  std::uint64_t fresh_seed() const;
  SeatDepth random_depth(const TaskCase& task_case) const;
  void say(const std::string& line) const;
  double elapsed_s() const;

  const LoadedTask& task_;
  ConductorOptions options_;
  ConductorTools tools_;
  const Clock& clock_;
  std::optional<Trial> trial_;
  std::unique_ptr<Seat> candidate_;
  std::unique_ptr<Seat> reference_;
  std::int64_t began_ns_ = 0;
  std::int64_t unit_began_ns_ = 0;
  double wall_before_s_ = 0;
  double longest_unit_s_ = 0;
  int units_done_ = 0;
  bool paused_ = false;
  std::optional<SeatEnding> ending_;
  std::optional<Error> save_failed_;
};

}  // namespace kbeam
