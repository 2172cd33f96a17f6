// The planner's reply, frame by frame (engine/target/cuda/planner_wire.h). Writing uses no memory
// and may happen in a signal handler.
#pragma once

#include <cstdint>
#include <string_view>

namespace kbeam::planner {

// Moves the reply out of the way of printf and std::cout: what a candidate prints goes nowhere.
void open_reply();
void write_frame(std::string_view kind, std::int64_t index, std::string_view payload);

}  // namespace kbeam::planner
