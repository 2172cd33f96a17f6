// Where the time of a plan goes: every case of a task is called once, then its nodes are timed one
// by one. For `kbeam profile --measured`; no verdict comes from here.
#pragma once

#include <filesystem>
#include <functional>

#include "base/json.h"
#include "base/result.h"
#include "execute/evaluation_task.h"
#include "target/cuda/seat.h"

namespace kbeam {

struct NodeProfileRequest {
  std::filesystem::path worker;
  int device = 0;
  int repeats = 15;
  std::function<Result<std::unique_ptr<Seat>>(const SeatOptions&, std::optional<SeatFailure>&)>
      start_seat;
};

// {"device", "cases": [{"case", "total_ns", "gap_ns", "nodes": [{"node", "kernel", "median_ns"}],
// "counters": []}]}. A case whose nodes cannot be timed is left out, with a line in "left_out".
Result<Json> profile_nodes(const LoadedTask& task, const NodeProfileRequest& request);

}  // namespace kbeam
