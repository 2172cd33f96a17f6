// Running a trusted program (compiler, readelf) to its end with captured output and limits. Not for
// candidates: those run under engine/target/cpu.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam {

struct ProcessRequest {
  std::vector<std::string> command;
  std::filesystem::path folder;          // working folder; empty: inherited
  std::vector<std::string> environment;  // "NAME=value"; the whole environment of the child
  double timeout_s = 60;
  std::int64_t memory_bytes = 0;                // RLIMIT_AS; 0: none
  std::int64_t file_bytes = 0;                  // RLIMIT_FSIZE; 0: none
  std::size_t output_limit_bytes = 256 * 1024;  // more is cut with a note
  bool idle_priority = false;                   // SCHED_IDLE: builds never disturb a measurement
  // The child is the first process of a PID namespace and a user namespace of its own, in which it
  // has every capability: whatever it starts, however detached, has ended when the call returns.
  bool own_processes = false;
  std::function<bool()> cancelled;    // asked now and then: true ends the child as if timed out
  std::function<bool()> before_exec;  // runs in the child (sandbox); false ends it
};

struct ProcessOutcome {
  int exit_code = -1;  // -1 when killed by a signal
  int signal = 0;
  bool timed_out = false;
  std::string output;  // stdout and stderr together
  double wall_s = 0;
};

// The child is the leader of a process group of its own, which is killed as a whole at the end.
Result<ProcessOutcome> run_process(const ProcessRequest& request);

}  // namespace kbeam
