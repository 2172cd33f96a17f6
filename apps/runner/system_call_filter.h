// Allow-lists of system calls for a process that holds a candidate. Both are built before any
// candidate code is there; installing one is a single system call.
#pragma once

#include <linux/filter.h>

#include <vector>

namespace kbeam::runner {

enum class Phase {
  loading,  // modules are opened and mapped; no new threads, timers, files to write, sockets
  running,  // nothing new to open or to execute either
};

enum class Libraries {
  none,
  allowed
};  // allowed: a baseline's BLAS looks at the machine while it runs

// Empty when libseccomp fails.
std::vector<sock_filter> make_filter(Phase phase, Libraries libraries);

// For all threads of the process. False when the kernel refuses.
bool install_filter(const std::vector<sock_filter>& filter);

}  // namespace kbeam::runner
