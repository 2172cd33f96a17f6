// kbeam-worker: trusted, self-contained, runs where only the CUDA driver is. Started by a person,
// by kbeam, or by itself as a seat.
#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "apps/worker/device_identity.h"
#include "apps/worker/device_probe.h"
#include "apps/worker/node_profile.h"
#include "apps/worker/task_run.h"
#include "apps/worker/worker_options.h"
#include "base/entropy.h"
#include "model/json_forms.h"
#include "target/cuda/nvml.h"
#include "target/cuda/self_test.h"

namespace kbeam {
namespace {

namespace fs = std::filesystem;

enum ExitCode { kDone = 0, kNo = 1, kBadInput = 2, kCannotWork = 3, kTimeIsUp = 4 };

int report_error(const Error& error) {
  fmt::print(stderr, "kbeam-worker: {}\n", error.text());
  return error.code == ErrorCode::bad_input || error.code == ErrorCode::not_found ||
                 error.code == ErrorCode::corrupt
             ? kBadInput
             : kCannotWork;
}

// A device that is ours until this ends, and all that is needed to run tasks on it.
class DeviceSession {
 public:
  static Result<std::unique_ptr<DeviceSession>> open(const WorkerOptions& options) {
    std::unique_ptr<DeviceSession> session(new DeviceSession(options));
    session->worker_ = fs::read_symlink("/proc/self/exe");
    ASSIGN_OR_RETURN(session->identity_, identify_device(session->worker_, options.device));
    ASSIGN_OR_RETURN(session->lock_,
                     session->devices_.lock(session->identity_.uuid, [&](const std::string& who) {
                       fmt::print(stderr, "waiting for {}, held by {}\n", session->identity_.name,
                                  who);
                     }));
    session->watch();
    return session;
  }

  ConductorTools tools() {
    ConductorTools tools;
    tools.start_seat = [](SeatRole, const SeatOptions& seat, std::optional<SeatFailure>& failure) {
      return Seat::start(seat, failure);
    };
    tools.random = random_bits;
    if (monitor_) tools.read_condition = [this] { return std::optional(read_condition()); };
    if (options_.verbose || ::isatty(STDERR_FILENO) != 0)
      tools.say = [](const std::string& line) { fmt::print(stderr, "  {}\n", line); };
    return tools;
  }

  ConductorOptions conductor_options() const {
    ConductorOptions conductor;
    conductor.worker = worker_;
    conductor.device = options_.device;
    conductor.device_uuid = identity_.uuid;
    conductor.pieces_s = options_.pieces_s - elapsed_s();
    conductor.device_is = {identity_.name, identity_.architecture, identity_.multiprocessors};
    conductor.ceilings = identity_.ceilings;
    conductor.wrapper = options_.wrapper;
    conductor.weaknesses = weaknesses_;
    return conductor;
  }

  double elapsed_s() const { return static_cast<double>(clock_.monotonic_ns() - began_ns_) * 1e-9; }
  const DeviceIdentity& identity() const { return identity_; }
  const DeviceStates& devices() const { return devices_; }
  const Clock& clock() const { return clock_; }
  const fs::path& worker() const { return worker_; }

 private:
  explicit DeviceSession(const WorkerOptions& options)
      : options_(options), began_ns_(clock_.monotonic_ns()) {}

  void watch() {
    auto monitor = GpuMonitor::open(identity_.uuid);
    if (!monitor.ok()) {
      weaknesses_.push_back("the clocks of the GPU are not watched: " + monitor.error().happened);
      return;
    }
    monitor_ = std::move(*monitor);
    for (const unsigned pid : monitor_->compute_processes())
      weaknesses_.push_back(fmt::format("process {} computes on the same GPU", pid));
  }

  DeviceCondition read_condition() const {
    const GpuReading reading = monitor_->read();
    DeviceCondition condition;
    condition.sm_clock_mhz = reading.sm_clock_mhz;
    condition.memory_clock_mhz = reading.memory_clock_mhz;
    condition.temperature_c = reading.temperature_c;
    condition.power_w = reading.power_w;
    condition.throttle_reasons = reading.throttle_reasons;
    return condition;
  }

  WorkerOptions options_;
  SystemClock clock_;
  std::int64_t began_ns_;
  fs::path worker_;
  DeviceIdentity identity_;
  DeviceStates devices_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<GpuMonitor> monitor_;
  std::vector<std::string> weaknesses_;
};

std::string_view word(const TaskRun& run) {
  if (run.was_done) return "done before";
  switch (run.conducted.end) {
    case Conducted::End::finished:
      return "finished";
    case Conducted::End::paused:
      return "paused";
    case Conducted::End::stuck:
      return "stuck";
  }
  return "";
}

void print_run(const fs::path& folder, const TaskRun& run, const WorkerOptions& options) {
  const TaskResult& result = run.conducted.result;
  if (options.json) {
    fmt::print("{}\n", json_text(Json{{"folder", folder.string()},
                                      {"end", std::string(word(run))},
                                      {"result", to_json(result)}}));
    return;
  }
  const Evaluation& evaluation = result.evaluation;
  fmt::print("{}: {}", folder.string(), word(run));
  if (run.conducted.end == Conducted::End::finished)
    fmt::print(", {}{}", to_string(evaluation.verdict),
               evaluation.reason.empty() ? "" : ": " + evaluation.reason);
  fmt::print("  ({:.1f} s)\n", result.wall_s);
  for (const Measurement& measurement : evaluation.measurements)
    fmt::print("  {:<20} {:>10.1f} us against {:>10.1f} us  {:.3f}x [{:.3f}, {:.3f}]  {}\n",
               measurement.case_name, measurement.summary.candidate_ns / 1e3,
               measurement.summary.reference_ns / 1e3, measurement.summary.speedup,
               measurement.summary.low, measurement.summary.high,
               to_string(measurement.summary.comparison));
  for (const auto& [name, time_ns] : result.case_ns)
    fmt::print("  {:<20} {:>10.1f} us\n", name, time_ns / 1e3);
}

int run_folders(const WorkerOptions& options) {
  const auto session = DeviceSession::open(options);
  if (!session.ok()) return report_error(session.error());
  int code = kDone;
  for (const fs::path& folder : options.folders) {
    const TaskRunOptions task_options{(*session)->conductor_options(), (*session)->identity().name};
    // At least one is always begun.
    if (&folder != &options.folders.front() && task_options.conductor.pieces_s <= 0)
      return kTimeIsUp;
    const auto run = run_task_folder(folder, task_options, (*session)->tools(),
                                     (*session)->devices(), (*session)->clock());
    if (!run.ok()) {
      code = report_error(run.error());
      if (code == kCannotWork) return code;
      continue;
    }
    print_run(folder, *run, options);
    if (run->conducted.end == Conducted::End::paused) return kTimeIsUp;
    if (run->conducted.end == Conducted::End::stuck)
      return report_error({ErrorCode::unavailable, "run " + folder.string(),
                           "not one case ended in the time that --pieces-s leaves",
                           "give it more time"});
    if (!run->conducted.result.device_trouble.empty()) return kCannotWork;
  }
  return code;
}

int run_plain(const WorkerOptions& options) {
  const auto session = DeviceSession::open(options);
  if (!session.ok()) return report_error(session.error());
  TaskRunOptions task_options{(*session)->conductor_options(), (*session)->identity().name, true};
  const auto run = run_task_folder(options.folders.front(), task_options, (*session)->tools(),
                                   (*session)->devices(), (*session)->clock());
  if (!run.ok()) return report_error(run.error());
  const Conducted& conducted = run->conducted;
  const Evaluation& evaluation = conducted.result.evaluation;
  Json json{{"verdict", std::string(to_string(evaluation.verdict))},
            {"reason", evaluation.reason},
            {"output_hashes", conducted.result.output_hashes},
            {"wrapper_exit_code", nullptr},
            {"wrapper_output", ""}};
  if (conducted.ending) {
    json["wrapper_exit_code"] = conducted.ending->exit_code;
    json["wrapper_output"] = conducted.ending->output;
  }
  fmt::print("{}\n", options.json ? json_text(json) : json.dump(2));
  const bool tool_is_content = !conducted.ending || conducted.ending->exit_code == 0;
  return evaluation.verdict == Verdict::accepted && tool_is_content ? kDone : kNo;
}

int run_nodes(const WorkerOptions& options) {
  const auto session = DeviceSession::open(options);
  if (!session.ok()) return report_error(session.error());
  const auto task = read_task_folder(options.folders.front());
  if (!task.ok()) return report_error(task.error());
  NodeProfileRequest request;
  request.worker = (*session)->worker();
  request.device = options.device;
  request.start_seat = Seat::start;
  const auto profile = profile_nodes(*task, request);
  if (!profile.ok()) return report_error(profile.error());
  fmt::print("{}\n", json_text(*profile));
  return (*profile)["left_out"].empty() ? kDone : kNo;
}

int run_probe(const WorkerOptions& options) {
  const auto session = DeviceSession::open(options);
  if (!session.ok()) return report_error(session.error());
  ProbeRequest request;
  request.seat.worker = (*session)->worker();
  request.seat.device = options.device;
  request.device_uuid = (*session)->identity().uuid;
  request.device_name = (*session)->identity().name;
  request.action = options.clear ? ProbeAction::clear : ProbeAction::look;
  const auto outcome =
      probe_device(request, (*session)->tools(), (*session)->devices(), (*session)->clock());
  if (!outcome.ok()) return report_error(outcome.error());
  if (options.json)
    fmt::print("{}\n", json_text(Json{{"device", outcome->device.name},
                                      {"uuid", outcome->device.uuid},
                                      {"driver", outcome->device.driver},
                                      {"sound", outcome->sound},
                                      {"quarantined", outcome->quarantine.has_value()}}));
  else
    fmt::print("{}\n", outcome->text());
  return outcome->sound && !outcome->quarantine ? kDone : kNo;
}

int run_tour(const WorkerOptions& options) {
  const auto session = DeviceSession::open(options);
  if (!session.ok()) return report_error(session.error());
  return run_self_test({(*session)->worker(), options.device}) == 0 ? kDone : kNo;
}

int identify() {
  const auto identity = read_device_identity();
  if (!identity.ok()) {  // read by identify_device(), which says what was attempted
    fmt::print("{}: {}; {}", identity.error().attempted, identity.error().happened,
               identity.error().advice);
    return kCannotWork;
  }
  fmt::print("{}\n", json_text(to_json(*identity)));
  return kDone;
}

int run(const std::vector<std::string>& arguments) {
  const auto options = parse_worker_options(arguments);
  if (!options.ok()) return report_error(options.error());
  switch (options->action) {
    case WorkerOptions::Action::run:
      return run_folders(*options);
    case WorkerOptions::Action::plain:
      return run_plain(*options);
    case WorkerOptions::Action::self_test:
      return run_tour(*options);
    case WorkerOptions::Action::nodes:
      return run_nodes(*options);
    case WorkerOptions::Action::probe:
      return run_probe(*options);
    case WorkerOptions::Action::identify:
      return identify();
    case WorkerOptions::Action::help:
      fmt::print("{}", worker_help());
      return kDone;
  }
  return kBadInput;
}

}  // namespace
}  // namespace kbeam

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == kbeam::kSeatArgument)
    return kbeam::serve_seat(std::atoi(arguments[1].c_str()));
  return kbeam::run(arguments);
}
