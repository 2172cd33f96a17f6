// One subject on one device, in this process: the context, the case that is prepared, and the call
// in the order that seat.h promises. Driven by seat_server.cpp; tested with a fake driver.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "target/cuda/cold_cache.h"
#include "target/cuda/device_memory.h"
#include "target/cuda/graph_replay.h"
#include "target/cuda/host_problem.h"
#include "target/cuda/seat.h"
#include "target/cuda/seat_kernels.h"
#include "target/cuda/seat_layout.h"
#include "target/cuda/seat_refusal.h"

namespace kbeam {

struct SessionSetup {
  std::vector<SessionCase> cases;
  std::map<std::string, std::string> images;  // by hash: the bytes
  std::string grade;
  bool may_use_libraries = false;
  MemoryMode memory = MemoryMode::guarded;
  HostProblem* host_problem = nullptr;  // null: no case needs it
  std::string_view trusted_image;       // of the seat's own kernels
};

// What the other side hears, and says, in the middle of a call.
struct CallHooks {
  std::function<void()> running;          // candidate kernels can run from now on
  std::function<std::uint64_t()> secret;  // after the drain
};

class SeatSession {
 public:
  // Makes the context and checks every plan against its image. Throws SeatRefusal (bad_plan) or
  // DriverFailure; so do all others. After a DriverFailure of a call the context is gone.
  SeatSession(const Driver& cuda, SessionSetup setup);
  ~SeatSession();
  SeatSession(const SeatSession&) = delete;
  SeatSession& operator=(const SeatSession&) = delete;

  SeatDevice describe() const;
  void prepare(const std::string& case_name);
  SeatCall call(const SeatCallRequest& request, const CallHooks& hooks);
  double host_slope_ns(int repeats, const CallHooks& hooks);
  SeatNodeTimes node_times(int repeats, const CallHooks& hooks);
  bool probe();

 private:
  // What prepare() makes for one case.
  struct Prepared {
    const SessionCase* the_case = nullptr;
    std::unique_ptr<CaseLayout> layout;
    std::unique_ptr<LoadedImage> image;
    std::unique_ptr<GraphReplay> subject, generate_candidate, generate_judge, quick, full;
    bool fresh = false;             // module state is as loaded
    bool tables_filled = false;     // at least once
    std::uint32_t local_bytes = 0;  // of the subject's kernels, a thread
    HostTensors host_inputs;
    // Graphs before the module whose kernels they launch.
    void clear();
  };

  int attribute(CUdevice_attribute which) const;
  ReplayContext judge_context() const;
  ReplayContext subject_context() const;
  LoadedImage* trusted_image(const LaunchPlan& plan);
  void check_plans();
  void forget_case();
  void restart_judge_memory();
  void build_case(const SessionCase& the_case);
  std::unique_ptr<GraphReplay> judge_replay(const std::optional<LaunchPlan>& plan,
                                            const CaseLayout& layout, bool on_candidate);

  void set_control(std::uint64_t seed, std::uint64_t secret);
  void generate(std::uint64_t seed, bool for_judge);
  void refresh_module();
  void poison_candidate();
  void poison_guard_zones();
  void poison_outputs();
  void refill(const OwnBuffer& own);
  void allow_on_inputs(DeviceAccess access);
  void take_inputs_as_they_are();
  void enter_run(bool cold, const CallHooks& hooks);
  void run_timed(SeatCall& call);
  void drain();
  void snapshot_outputs();
  CheckReport inspect(std::uint64_t seed);
  CheckReport check(const SeatCallRequest& request, std::uint64_t secret);
  // The driver's own limit for called functions, on top of what a kernel's own frame takes.
  static constexpr std::uint32_t kStackBytes = 1024;
  CheckReport check_on_device(const LaunchPlan& plan, const GraphReplay& replay);
  CheckReport check_on_host(const SeatCallRequest& request, std::uint64_t secret);
  bool find_late_write(CheckReport& report);
  void check_last_replay(std::uint64_t seed);
  std::string hash_outputs();

  const Driver& cuda_;
  SessionSetup setup_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr;
  CUevent end_ = nullptr;
  std::unique_ptr<SeatKernels> kernels_;
  std::unique_ptr<CandidateMemory> candidate_;
  std::unique_ptr<JudgeMemory> judge_;
  std::unique_ptr<LibraryNodes> library_;
  std::unique_ptr<ColdCache> cold_;
  std::map<std::string, std::unique_ptr<LoadedImage>> trusted_images_;
  Prepared prepared_;
  DevicePoison poison_;
};

}  // namespace kbeam
