// One run of kbeam-planner in its fence: the request goes in, frames come out, and how the process
// ended. Judges nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "target/cuda/planner_wire.h"

namespace kbeam {

struct PlannerFrame {
  std::string kind;
  std::int64_t index = 0;
  std::string payload;
};

struct PlannerRun {
  std::vector<PlannerFrame> frames;
  bool garbled = false;  // something that is no frame followed the last of `frames`
  bool timed_out = false;
  int exit_code = -1;
  int signal = 0;
};

struct PlannerProcess {
  std::filesystem::path planner;
  std::filesystem::path module;
  std::string request;  // JSON
  double timeout_s = 10;
  std::int64_t memory_bytes = 0;
};

Result<PlannerRun> run_planner(const PlannerProcess& process);

// Splits a reply; stops at the first thing that is no whole frame.
PlannerRun read_frames(std::string_view reply);

}  // namespace kbeam
