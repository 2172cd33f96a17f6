#include "apps/worker/conductor.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "apps/worker/conductor_phase.h"
#include "apps/worker/task_seats.h"
#include "base/defence.h"

namespace kbeam {
namespace {

// racecheck and initcheck take up to some hundred times as long as a plain run.
constexpr double kSlowdownUnderATool = 30;

}  // namespace

Conductor::Conductor(const LoadedTask& task, ConductorOptions options, ConductorTools tools,
                     const Clock& clock)
    : task_(task), options_(std::move(options)), tools_(std::move(tools)), clock_(clock) {}

Result<Conducted> Conductor::run(std::optional<SavedProgress> progress) {
  began_ns_ = clock_.monotonic_ns();
  trial_.emplace(task_, std::move(progress), clock_.unix_ms());
  wall_before_s_ = trial_->result().wall_s;
  if (trial_->settle_on(options_.device_uuid))
    say("another device than before: what was measured there is measured again here");
  for (const std::string& weakness : options_.weaknesses) trial_->note(weakness);
  if (fits_device() && skip_unsupported()) switch (task_.task.kind) {
      case TaskKind::check:
      case TaskKind::plain:
        run_checks();
        break;
      case TaskKind::compare:
        run_compare();
        break;
      case TaskKind::time_only:
        run_time_only();
        break;
    }
  if (!save_failed_ && !paused_) finish();
  if (candidate_ && !options_.wrapper.empty()) ending_ = candidate_->end();
  candidate_.reset();
  reference_.reset();
  if (save_failed_) return *save_failed_;
  Conducted conducted{Conducted::End::finished, trial_->result(), std::move(ending_)};
  if (paused_) conducted.end = units_done_ > 0 ? Conducted::End::paused : Conducted::End::stuck;
  return conducted;
}

// ---- the course of each kind ----

// Plans for another device may be refused by this one, or be slow on it: no fault of the candidate.
bool Conductor::fits_device() {
  const PlannedDevice& planned = task_.task.planned_for;
  const PlannedDevice& here = options_.device_is;
  if (here.architecture == 0 || (here.architecture == planned.architecture &&
                                 here.multiprocessors == planned.multiprocessors))
    return true;
  return trial_->fail(
      Verdict::engine_failed,
      fmt::format("planned for {} (sm_{}, {} multiprocessors), but this device is {} (sm_{}, {}): "
                  "plan with --gpu and a description of it in contract/devices",
                  planned.name, planned.architecture, planned.multiprocessors, here.name,
                  here.architecture, here.multiprocessors));
}

// A case that the candidate does not support is said so and left out; with none left there is
// nothing to judge.
bool Conductor::skip_unsupported() {
  const TaskSubject& candidate = task_.task.candidate;
  const bool times = !task_.task.timed_cases.empty();
  const std::vector<std::string>& must = times ? task_.task.timed_cases : task_.task.check_cases;
  if (supported(must).empty() && !must.empty())
    return trial_->fail(Verdict::not_supported, candidate.not_supported.at(must.front()));
  for (const TaskCase& task_case : task_.task.cases) {
    const std::string& name = task_case.the_case.name;
    const auto why = candidate.not_supported.find(name);
    if (why == candidate.not_supported.end() || trial_->is_checked(name)) continue;
    CheckReport report;
    report.case_name = name;
    report.verdict = Verdict::not_supported;
    report.grade = task_.task.grade;
    report.sentence = why->second;
    trial_->evaluation().checks.push_back(std::move(report));
    trial_->now().checked.push_back(name);
  }
  return true;
}

bool Conductor::run_checks() {
  const std::vector<std::string> names = supported(task_.task.check_cases);
  if (std::ranges::all_of(names, [&](const auto& name) { return trial_->is_checked(name); }))
    return true;
  if (!may_start_unit() || !open_candidate()) return false;
  for (const std::string& name : names)
    if (!trial_->is_checked(name) && !check_case(find_case(task_.task, name))) return false;
  return true;
}

bool Conductor::run_compare() {
  const StoppingRule& rule = task_.task.rule;
  for (int process = 0; process < rule.processes; ++process) {
    if (!run_round(process)) return false;
    trial_->summarise();
    if (process + 1 == rule.processes) return true;
    if (const auto why = may_end_early(rule, trial_->evaluation().measurements)) {
      for (Measurement& measurement : trial_->evaluation().measurements)
        measurement.stop_reason = *why;
      say("ends here: " + *why);
      return true;
    }
  }
  return true;
}

// One pair of fresh processes: all that is left to do in it.
bool Conductor::run_round(int process) {
  std::vector<std::string> checks = supported(task_.task.check_cases);
  std::vector<std::string> timings = supported(task_.task.timed_cases);
  if (process > 0) checks.clear();
  std::erase_if(checks, [&](const std::string& name) { return trial_->is_checked(name); });
  std::erase_if(timings, [&](const std::string& name) { return trial_->is_timed(name, process); });
  if (checks.empty() && timings.empty()) return true;
  if (!may_start_unit() || !open_candidate()) return false;
  for (const std::string& name : checks)
    if (!check_case(find_case(task_.task, name))) return false;
  if (!open_reference()) return false;
  for (const std::string& name : timings)
    if (!time_case(find_case(task_.task, name), process)) return false;
  const bool sound = confirm_device();
  candidate_.reset();
  reference_.reset();
  return sound;
}

bool Conductor::run_time_only() {
  const std::vector<std::string> names = supported(task_.task.timed_cases);
  for (const std::string& name : names) {
    if (trial_->result().case_ns.contains(name) || trial_->is_checked(name)) continue;
    if (!candidate_ && (!may_start_unit() || !open_candidate())) return false;
    if (!time_trusted_case(find_case(task_.task, name))) return false;
  }
  return true;
}

// ---- seats ----

std::vector<std::string> Conductor::supported(const std::vector<std::string>& names) const {
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found), [&](const std::string& name) {
    const bool is_seen = defence_is_on(Defence::private_cases) ||
                         find_case(task_.task, name).the_case.pool == Pool::public_pool;
    return is_seen && task_.task.candidate.plan_of_case.contains(name);
  });
  return found;
}

SeatOptions Conductor::options_for(const TaskSubject& subject,
                                   const std::vector<std::string>& names) const {
  SeatOptions options = seat_options(task_, subject, names);
  options.worker = options_.worker;
  options.device = options_.device;
  return options;
}

bool Conductor::open_candidate() {
  {
    const Phase phase(*this, "start");
    std::vector<std::string> names = supported(task_.task.check_cases);
    for (const std::string& name : supported(task_.task.timed_cases))
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    SeatOptions options = options_for(task_.task.candidate, names);
    if (task_.task.kind == TaskKind::plain) {
      options.plain_memory = true;
      options.wrapper = options_.wrapper;
      if (!options.wrapper.empty()) options.call_timeout_s *= kSlowdownUnderATool;
    }
    std::optional<SeatFailure> failure;
    auto started = tools_.start_seat(SeatRole::candidate, options, failure);
    if (failure) return trial_->fail(failure->verdict, failure->sentence);
    if (!started.ok()) return trial_->fail(Verdict::engine_failed, started.error().text());
    candidate_ = std::move(*started);
    if (candidate_->device().uuid != options_.device_uuid)
      return trial_->fail(Verdict::engine_failed,
                          fmt::format("the seat runs on {}, but {} is locked",
                                      candidate_->device().uuid, options_.device_uuid));
    trial_->describe(candidate_->device());
  }
  // Nothing of the candidate has run in this context yet: the answer is the device's.
  return confirm_device();
}

// The reference's troubles are never the candidate's.
bool Conductor::open_reference() {
  const Phase phase(*this, "start");
  const std::vector<std::string> names = supported(task_.task.timed_cases);
  for (const std::string& name : names)
    if (!task_.task.reference->plan_of_case.contains(name))
      return trial_->fail(Verdict::engine_failed, "the reference does not support case " + name +
                                                      ": " +
                                                      task_.task.reference->not_supported.at(name));
  std::optional<SeatFailure> failure;
  auto started =
      tools_.start_seat(SeatRole::reference, options_for(*task_.task.reference, names), failure);
  if (failure || !started.ok())
    return trial_->fail(
        Verdict::engine_failed,
        "the reference did not start: " + (failure ? failure->sentence : started.error().text()));
  reference_ = std::move(*started);
  return true;
}

bool Conductor::seat_failed(const Seat& seat, const Case& the_case, const SeatFailure& failure) {
  if (&seat == candidate_.get())
    return trial_->fail_on(the_case, failure.verdict, failure.sentence);
  return trial_->fail(Verdict::engine_failed, fmt::format("the reference failed on case {}: {}",
                                                          the_case.name, failure.sentence));
}

bool Conductor::prepare(Seat& seat, const TaskCase& task_case) {
  const auto failure = seat.prepare(task_case.the_case.name);
  return !failure || seat_failed(seat, task_case.the_case, *failure);
}

// One checked call; false when the evaluation has failed.
bool Conductor::call(Seat& seat, const TaskCase& task_case, const SeatCallRequest& request,
                     SeatCall& result) {
  if (const auto failure = seat.call(request, result))
    return seat_failed(seat, task_case.the_case, *failure);
  if (!result.note.empty()) trial_->note(result.note);
  const bool is_timed = request.cold;
  if (is_timed && !defence_is_on(Defence::every_output_checked)) return true;
  if (&seat == candidate_.get())
    return trial_->take(task_case.the_case, result.report, request.seed);
  return result.report.verdict == Verdict::accepted ||
         seat_failed(seat, task_case.the_case,
                     {result.report.verdict, result.report.sentence, true});
}

// Asks the device a question with a known answer, in a process that is still sound; when that one
// fails, in a fresh one. False: the evaluation cannot stand.
bool Conductor::confirm_device() {
  const Phase phase(*this, "probe");
  Seat* const standing = reference_ ? reference_.get() : candidate_.get();
  if (standing != nullptr && standing->probe()) return device_is_sound();
  SeatOptions options;
  options.worker = options_.worker;
  options.device = options_.device;
  options.call_timeout_s = task_.task.call_timeout_s;
  std::optional<SeatFailure> failure;
  const auto witness = tools_.start_seat(SeatRole::witness, options, failure);
  if (failure && failure->verdict != Verdict::over_memory)
    return void_device("no process can use it: " + failure->sentence);
  // Neither says anything about the device: somebody else fills its memory, or we cannot work.
  if (failure) return trial_->fail(Verdict::engine_failed, failure->sentence);
  if (!witness.ok()) return trial_->fail(Verdict::engine_failed, witness.error().text());
  if (!(*witness)->probe()) return void_device("a probe gave a wrong answer in a fresh process");
  return device_is_sound();
}

bool Conductor::device_is_sound() {
  trial_->confirm();
  if (!trial_->failed()) save();  // a failure becomes the result, never progress
  return !save_failed_;
}

// The device itself is no longer to be trusted: what it said since its last good probe is void.
bool Conductor::void_device(const std::string& evidence) {
  trial_->roll_back();
  save();
  trial_->result().device_trouble = evidence;
  return trial_->fail(Verdict::engine_failed, "the device failed its probe: " + evidence);
}

// ---- time, progress, end ----

double Conductor::elapsed_s() const {
  return static_cast<double>(clock_.monotonic_ns() - began_ns_) * 1e-9;
}

bool Conductor::out_of_time() const {
  return elapsed_s() > options_.pieces_s;
}

// Begins a unit of work (a case in a process), unless it could not be ended in time. The first one
// is always begun, so that every call gets on.
bool Conductor::may_start_unit() {
  unit_began_ns_ = clock_.monotonic_ns();
  if (units_done_ > 0 && elapsed_s() + longest_unit_s_ > options_.pieces_s) paused_ = true;
  return !paused_;
}

bool Conductor::unit_done() {
  ++units_done_;
  longest_unit_s_ =
      std::max(longest_unit_s_, static_cast<double>(clock_.monotonic_ns() - unit_began_ns_) * 1e-9);
  trial_->result().wall_s = wall_before_s_ + elapsed_s();
  save();
  return !save_failed_;
}

void Conductor::save() {
  if (const Result<void> saved = tools_.save(trial_->saved()); !saved.ok())
    save_failed_ = saved.error();
}

void Conductor::note_condition(const std::string& case_name, int process) {
  if (!tools_.read_condition) return;
  std::optional<DeviceCondition> condition = tools_.read_condition();
  if (!condition) return;
  condition->case_name = case_name;
  condition->process = process;
  trial_->result().conditions.push_back(std::move(*condition));
}

void Conductor::say(const std::string& line) const {
  if (tools_.say) tools_.say(line);
}

// The last word: is the device still sound, is a time too good to be true.
void Conductor::finish() {
  const bool device_is_known = trial_->result().device_trouble.empty();
  const bool worked = candidate_ || reference_ || trial_->failed() || trial_->has_unconfirmed();
  if (device_is_known && worked && trial_->evaluation().verdict != Verdict::not_supported)
    confirm_device();
  Evaluation& evaluation = trial_->evaluation();
  trial_->summarise();
  if (!trial_->failed()) trial_->hold_to_floors(options_.ceilings);
  TaskResult& result = trial_->result();
  result.wall_s = wall_before_s_ + elapsed_s();
  evaluation.check_s = result.phase_s["check"] + result.phase_s["start"];
  evaluation.measure_s = result.phase_s["time"];
  evaluation.ended_unix_ms = clock_.unix_ms();
  evaluation = make_evaluation(std::move(evaluation));
}

}  // namespace kbeam
