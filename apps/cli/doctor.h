// What doctor finds on this machine: one finding a line.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"

namespace kbeam::cli {

struct Finding {
  std::string what;
  // absent: a part of kbeam cannot be used here, and no campaign on the CPU misses it.
  enum class State { works, weaker, absent, missing } state = State::works;
  std::string text;
};

// What CUDA candidates need, in the order in which they need it: nvcc to build, kbeam-planner to
// plan, kbeam-worker, the driver and a GPU to judge, and the tools around them. Runs nothing on a
// GPU.
std::vector<Finding> examine_cuda(const Home& home);

}  // namespace kbeam::cli
