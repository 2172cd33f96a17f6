// A tour of the seat on a real GPU: every kind of node, every defence, the cold cache, the clocks.
// Starts seats as a conductor does; needs no problem, no planner and no task folder.
#pragma once

#include <cstdio>
#include <filesystem>

namespace kbeam {

struct SelfTestOptions {
  std::filesystem::path worker;  // this binary: started as `worker --seat 3`
  int device = 0;
  std::FILE* out = stdout;
};

// Prints a table, one line a test. Returns the number of tests that failed; 0 is a sound seat.
int run_self_test(const SelfTestOptions& options);

}  // namespace kbeam
