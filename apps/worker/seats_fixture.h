// Seats that are no GPU's: they answer as a test says, write down what they are asked, and move a
// clock by hand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "apps/worker/conductor.h"
#include "base/clock.h"

namespace kbeam {

// Thrown out of a seat: the worker dies at this very point.
struct Killed {};

struct SeatBehaviour {
  double event_ns = 1000;
  double slope_ns = 1000;
  // Of a call on the host's clock, beyond its events.
  std::function<double(int call)> hidden_ns;  // empty: what a launch costs
  std::string uuid = "GPU-1";
  std::optional<SeatFailure> start_failure;
  std::optional<Error> start_error;
  std::function<std::optional<SeatFailure>(int call)> fail_call;  // calls are counted from 0
  std::function<CheckReport(int call)> report;                    // empty: accepted
  std::function<bool(int probe)> probe;                           // empty: true
};

struct SeatLab {
  struct Entry {
    std::string what;  // "start", "prepare", "call", "slope", "probe", "end"
    SeatRole role = SeatRole::witness;
    SeatCallRequest request;  // of a call; of others only the case
  };
  std::map<SeatRole, SeatBehaviour> behaviour;
  std::vector<Entry> log;
  std::vector<SeatOptions> options;  // of every start
  ManualClock clock;
  double call_s = 0.001;
  int kill_at = -1;  // the seats' operation that never returns
  int calls[3] = {0, 0, 0};
  int probes[3] = {0, 0, 0};
  int alive = 0;  // seats

  void record(const std::string& what, SeatRole role, const SeatCallRequest& request = {}) {
    if (kill_at >= 0 && static_cast<int>(log.size()) == kill_at) throw Killed();
    log.push_back({what, role, request});
  }
  // "call candidate large", one a line, without the random parts.
  std::vector<std::string> story() const {
    static constexpr const char* kNames[] = {"witness", "candidate", "reference"};
    std::vector<std::string> lines;
    for (const Entry& entry : log) {
      std::string line = entry.what + " " + kNames[static_cast<int>(entry.role)];
      if (!entry.request.case_name.empty()) line += " " + entry.request.case_name;
      lines.push_back(line);
    }
    return lines;
  }
  std::vector<SeatCallRequest> calls_of(SeatRole role, const std::string& case_name) const {
    std::vector<SeatCallRequest> found;
    for (const Entry& entry : log)
      if (entry.what == "call" && entry.role == role && entry.request.case_name == case_name)
        found.push_back(entry.request);
    return found;
  }
  int count(const std::string& what, SeatRole role) const {
    int found = 0;
    for (const Entry& entry : log) found += entry.what == what && entry.role == role ? 1 : 0;
    return found;
  }
  inline ConductorTools tools();
};

class SeatForTests final : public Seat {
 public:
  SeatForTests(SeatLab& lab, SeatRole role) : lab_(lab), role_(role) {
    const std::string& uuid = lab.behaviour[role].uuid;
    device_ = {"A GPU", uuid, "580.1", 132, 90, {"pageable memory can be reached"}};
    ++lab_.alive;
  }
  ~SeatForTests() override { --lab_.alive; }
  SeatForTests(const SeatForTests&) = delete;
  SeatForTests& operator=(const SeatForTests&) = delete;

  const SeatDevice& device() const override { return device_; }

  std::optional<SeatFailure> prepare(const std::string& case_name) override {
    lab_.record("prepare", role_, {.case_name = case_name});
    return std::nullopt;
  }

  std::optional<SeatFailure> call(const SeatCallRequest& request, SeatCall& result) override {
    lab_.record("call", role_, request);
    const SeatBehaviour& behaviour = lab_.behaviour[role_];
    const int index = lab_.calls[static_cast<int>(role_)]++;
    lab_.clock.advance_ns(static_cast<std::int64_t>(lab_.call_s * 1e9));
    if (behaviour.fail_call)
      if (auto failure = behaviour.fail_call(index)) return failure;
    // A little noise, so that medians and intervals are no special case.
    result.event_ns = behaviour.event_ns * (1 + 0.001 * (index % 5));
    result.host_ns = result.event_ns + (behaviour.hidden_ns ? behaviour.hidden_ns(index) : 3000);
    result.report.verdict = Verdict::accepted;
    result.report.outputs_checked = 1;
    result.report.figures = {{"error", 0.5, 1, "eps", "element 0"}};
    if (behaviour.report) result.report = behaviour.report(index);
    result.output_hash = "hash of " + request.case_name + " " + std::to_string(request.seed);
    return std::nullopt;
  }

  std::optional<SeatFailure> host_slope_ns(const std::string& case_name, int,
                                           double& slope_ns) override {
    lab_.record("slope", role_, {.case_name = case_name});
    slope_ns = lab_.behaviour[role_].slope_ns;
    return std::nullopt;
  }

  std::optional<SeatFailure> node_times(const std::string& case_name, int,
                                        SeatNodeTimes& times) override {
    lab_.record("nodes", role_, {.case_name = case_name});
    times = {{0}, {5000}, 1000, 9000};
    return std::nullopt;
  }

  bool probe() override {
    lab_.record("probe", role_);
    const int index = lab_.probes[static_cast<int>(role_)]++;
    const SeatBehaviour& behaviour = lab_.behaviour[role_];
    return !behaviour.probe || behaviour.probe(index);
  }

  SeatEnding end() override {
    lab_.record("end", role_);
    return {0, "========= ERROR SUMMARY: 0 errors"};
  }

 private:
  SeatLab& lab_;
  SeatRole role_;
  SeatDevice device_;
};

inline ConductorTools SeatLab::tools() {
  ConductorTools tools;
  tools.start_seat = [this](SeatRole role, const SeatOptions& seat_options,
                            std::optional<SeatFailure>& failure) -> Result<std::unique_ptr<Seat>> {
    record("start", role);
    options.push_back(seat_options);
    if (behaviour[role].start_error) return *behaviour[role].start_error;
    failure = behaviour[role].start_failure;
    if (failure) return std::unique_ptr<Seat>();
    return std::unique_ptr<Seat>(std::make_unique<SeatForTests>(*this, role));
  };
  tools.save = [](const SavedProgress&) { return Result<void>(); };
  tools.random = [state = std::uint64_t{1}]() mutable {
    state += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
  };
  return tools;
}

}  // namespace kbeam
