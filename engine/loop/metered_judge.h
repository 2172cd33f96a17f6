// A judge that counts the time in which it has the device: checks, measurements, ceilings,
// controls.
#pragma once

#include <memory>

#include "loop/activity.h"
#include "session/judge.h"

namespace kbeam {

// `meter` counts from the beginning to the end of every call, and must outlive the judge.
std::unique_ptr<Judge> make_metered_judge(std::unique_ptr<Judge> judge, ActivityMeter& meter);

}  // namespace kbeam
