// Stands in for the CUDA runtime while a module is loaded: the registration code that nvcc puts
// into it hands over the name of every kernel. Launches from the host are counted, never made.
#pragma once

#include <string>

namespace kbeam::planner {

// The mangled name of the kernel that this host address stands for; null: it is none.
const std::string* find_kernel(const void* host_address);
int host_launches();

}  // namespace kbeam::planner
