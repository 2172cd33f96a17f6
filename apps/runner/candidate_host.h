// Carries the judge's commands out: loads modules, records plans, protects memory, runs calls.
// Trusts the page only as far as a process can that shares its memory with a candidate: the judge
// believes outputs alone.
#pragma once

#include <kbeam/cpu_plan.h>

#include <array>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "target/cpu/control_page.h"

namespace kbeam::runner {

struct HostMemory {
  std::byte* inputs = nullptr;
  std::byte* outputs = nullptr;
  std::byte* scratch = nullptr;  // page_.settings.scratch_bytes, between guards
};

// Address space before and behind the scratch memory that nobody may touch.
inline constexpr std::size_t kScratchGuard = 1 << 20;

// How a candidate may use what surrounds its memory.
int outside_access();

// How a candidate may use its inputs.
int input_access();

class CandidateHost {
 public:
  CandidateHost(control::Page& page, HostMemory memory, WorkerTeam& team);

  // Opens every module of the settings; false when one cannot be loaded (the reply says why).
  bool load();
  // One request, but for load. The reply is complete when this returns.
  void serve(const control::Request& request);

 private:
  struct PlannedShape {
    CpuPlan plan;
    std::size_t tensors;
  };

  control::Status plan(const control::Request& request);
  control::Status lay_out(const control::Request& request);
  control::Status call(const control::Request& request);
  PlanShape read_shape(const control::Request& request) const;
  std::byte* scratch_end() const { return memory_.scratch + page_.settings.scratch_bytes; }
  bool grow_scratch(std::size_t bytes);
  void write_notes(const CpuPlan& plan);
  void say(const std::string& text);

  control::Page& page_;
  HostMemory memory_;
  WorkerTeam& team_;
  std::vector<kbeam_plan_function*> modules_;
  std::deque<PlannedShape> plans_;
  std::vector<std::array<void*, control::kMaxTensors>> slots_;
  std::size_t slot_tensors_ = 0;
  std::size_t scratch_bytes_ = 0;  // usable, at the end of the scratch memory
};

}  // namespace kbeam::runner
