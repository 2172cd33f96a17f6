// What a seat is told of one subject of a task. Starts nothing.
#pragma once

#include <string>
#include <vector>

#include "execute/evaluation_task.h"
#include "target/cuda/seat.h"

namespace kbeam {

// With the plans of the named cases, each of which the subject must have. The caller adds the
// worker and the device. `task` must outlive the options.
SeatOptions seat_options(const LoadedTask& task, const TaskSubject& subject,
                         const std::vector<std::string>& case_names);

}  // namespace kbeam
