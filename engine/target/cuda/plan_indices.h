// Indices, offsets and order of a plan, checked once more before they are used as array indices:
// plans come from a folder that was carried here. What a plan may ask for is plan_mistakes.h's.
#pragma once

#include <set>
#include <string>

#include "model/launch_plan.h"

namespace kbeam {

// Empty when sound.
std::string find_index_mistake(const LaunchPlan& plan);

// Conditions that a conditional node decides on.
std::set<int> used_conditions(const LaunchPlan& plan);

}  // namespace kbeam
