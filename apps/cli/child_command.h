// Runs a command of this kbeam in a process of its own and gives back what it printed: for those
// who serve others (mcp, agents).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam::cli {

struct ChildCommand {
  std::vector<std::string> words;  // behind `kbeam`
  std::string speaker;             // who asks, for what is written down
  double timeout_s = 60;
  std::function<bool()> cancelled;
  bool gives_way = false;  // to measurements: runs at idle priority
};

struct ChildOutcome {
  int exit_code = -1;
  bool timed_out = false;  // or cancelled
  std::string output;      // stdout
  std::string last_line;   // of it: the JSON of a command with --json
  std::string complaint;   // stderr; what went wrong where there is none
};
Result<ChildOutcome> run_child_command(const ChildCommand& command);

}  // namespace kbeam::cli
