// Hardware counters from the table that Nsight Compute prints with --csv, for a profile. Runs
// nothing.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "report/profile.h"

namespace kbeam {

// The mean of each metric over the launches of each of `kernels` (mangled names, which ncu prints
// with
// --print-kernel-base mangled); other kernels are the judge's. Fails on what is no such table, and
// when it names none of the kernels.
Result<std::vector<MeasuredCounter>> counters_from_ncu(std::string_view csv,
                                                       const std::set<std::string>& kernels);

}  // namespace kbeam
