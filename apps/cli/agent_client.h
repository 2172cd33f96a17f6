// kbeam inside an agent's room: the few commands that the campaign answers through its socket.
#pragma once

#include <vector>

#include "apps/cli/command.h"

namespace kbeam::cli {

// The environment names a socket: every other command is out of reach, and would find nothing here.
bool is_in_agent_room();

std::vector<Command> agent_room_commands();

}  // namespace kbeam::cli
