// A clock of the planner's own for the module: the two runs of a plan see times that are decades
// apart, so that a plan that looks at the time is not the same twice.
#pragma once

#include <cstdint>

namespace kbeam::planner {
void set_clock_s(std::int64_t seconds);
}
