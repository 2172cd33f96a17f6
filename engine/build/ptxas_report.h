// What each kernel takes, read from the compiler's own output: `ptxas -v` says registers, shared
// memory, stack and spills; the PTX says the launch bounds. The driver has the last word.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "model/candidate.h"

namespace kbeam {

// By mangled name. A kernel that was compiled for several architectures has the largest of each
// number.
std::map<std::string, KernelResources> read_ptxas_report(std::string_view report);

// Sets max_threads of the kernels that declare launch bounds.
void read_launch_bounds(std::string_view ptx, std::map<std::string, KernelResources>& kernels);

}  // namespace kbeam
