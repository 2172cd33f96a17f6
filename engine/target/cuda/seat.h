// One subject on the GPU, in a process and a context of its own, driven by the conductor. The
// candidate is device code only; the process around it is trusted. While candidate kernels can run,
// no pristine input, limit, figure or snapshot is mapped into their address space.
//
// A call, in this order: inputs generated from the seed, outputs and guard zones poisoned, module
// state as freshly loaded, L2 flushed; the plan's graph replayed between two events; the context
// drained; outputs snapshotted; pristine inputs generated anew from the seed and compared with what
// the candidate was given; guard zones inspected; the snapshot checked; the outputs compared with
// the snapshot once more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/evaluation.h"
#include "model/launch_plan.h"
#include "model/problem.h"
#include "model/verdict.h"

namespace kbeam {

// One case as a seat needs it. Plans are null where the host does it (problem.so).
struct SeatCase {
  Case the_case;
  std::vector<TensorShape> tensors;
  const LaunchPlan* subject = nullptr;
  const LaunchPlan* generate = nullptr;
  const LaunchPlan* quick_check = nullptr;
  const LaunchPlan* full_check = nullptr;
};

struct SeatOptions {
  std::filesystem::path worker;                         // this binary, started again as a seat
  std::map<std::string, std::filesystem::path> images;  // by hash
  std::filesystem::path problem_module;
  std::vector<SeatCase> cases;
  std::string grade;
  int device = 0;
  double call_timeout_s = 10;
  bool may_use_libraries = false;
  // Plain allocations of exact size and no cold-cache work: what a sanitizer can watch.
  bool plain_memory = false;
  std::vector<std::string> wrapper;  // "compute-sanitizer --tool memcheck": started around the seat
};

enum class SeatDepth { quick, full };

struct SeatCallRequest {
  std::string case_name;
  std::uint64_t seed = 0;    // of the inputs
  std::uint64_t secret = 0;  // of the check; sent only after the drain
  SeatDepth depth = SeatDepth::full;
  bool cold = true;
};

struct SeatCall {
  double event_ns = 0;  // graph replay between two events
  double host_ns = 0;   // launch to drain on the host's clock: the events' story and what they miss
  CheckReport report;   // verdict, figures
  std::string output_hash;  // plain memory only
  std::string note;         // what of the call was not as usual; for the measurement's notes
};

// Per node of no body: its median time alone, one node after the other in one graph. A conditional
// node counts with its bodies.
struct SeatNodeTimes {
  std::vector<int> nodes;       // indices in LaunchPlan::nodes
  std::vector<double> node_ns;  // one each, including about gap_ns of event overhead
  double gap_ns = 0;            // between two events with nothing in between
  double replay_ns = 0;         // the whole plan as it runs in a call, warm
};

// What the seat's process left behind.
struct SeatEnding {
  int exit_code = -1;  // of the wrapper where there is one; -1: killed
  std::string output;  // the end of what it printed
};

// Why a call gave no result; the seat is gone unless `alive`.
struct SeatFailure {
  Verdict verdict = Verdict::engine_failed;
  std::string sentence;
  bool alive = false;
};

struct SeatDevice {
  std::string name;
  std::string uuid;
  std::string driver;
  int multiprocessors = 0;
  int architecture = 0;
  std::vector<std::string> weaknesses;  // pageable memory reachable from kernels, ...
};

class Seat {
 public:
  // Starts the process, makes the context, loads the images and checks every plan against them
  // (parameter sizes, shared memory, registers). A plan that the device refuses is bad_plan.
  static Result<std::unique_ptr<Seat>> start(const SeatOptions& options,
                                             std::optional<SeatFailure>& failure);
  virtual ~Seat() = default;  // kills the process

  virtual const SeatDevice& device() const = 0;
  // Buffers of the case are laid out and its graph is made; the memory of the case before it is
  // freed.
  virtual std::optional<SeatFailure> prepare(const std::string& case_name) = 0;
  virtual std::optional<SeatFailure> call(const SeatCallRequest& request, SeatCall& result) = 0;
  // Replays K and 2K times without checks (trusted or already checked): (t(2K) - t(K)) / K on the
  // host's clock, to hold against the events.
  virtual std::optional<SeatFailure> host_slope_ns(const std::string& case_name, int repeats,
                                                   double& slope_ns) = 0;
  virtual std::optional<SeatFailure> node_times(const std::string& case_name, int repeats,
                                                SeatNodeTimes& times) = 0;
  // A trusted kernel computes a known answer: false when the device is no longer sound.
  virtual bool probe() = 0;
  // Ends the process in good order, so that a wrapper can finish its report.
  virtual SeatEnding end() = 0;
};

// The other side: the seat's own process, commands on one descriptor. Returns the exit code. The
// worker's main calls it when its first argument is kSeatArgument; the second is the descriptor.
int serve_seat(int descriptor);
inline constexpr const char* kSeatArgument = "--seat";

}  // namespace kbeam
