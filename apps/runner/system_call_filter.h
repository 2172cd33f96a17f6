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

// Empty when libseccomp fails. While loading, the one further filter that may be installed is
// `next`, with the flags of install_filter: a module that runs code at load time can neither put
// one of its own in its place nor count as fenced without it.
std::vector<sock_filter> make_filter(Phase phase, Libraries libraries,
                                     const sock_fprog* next = nullptr);

// A copy of the filter at the bottom of the address space, below all else and read-only. Every
// filter of make_filter refuses to map, unmap, move or unprotect anything down there, so what the
// kernel reads later is what was put there now. Once a process; null when there is no such memory.
const sock_fprog* guard_filter(const std::vector<sock_filter>& filter);

// For all threads of the process. False when the kernel refuses.
bool install_filter(const sock_fprog& program);
bool install_filter(const std::vector<sock_filter>& filter);

}  // namespace kbeam::runner
