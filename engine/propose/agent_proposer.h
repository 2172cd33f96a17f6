// A coding agent as a proposer: its command is run in a room of its own, with a workspace, and what
// it submits through the socket is what it proposes. How `kbeam check` and the like do their work
// is the caller's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "propose/agent_sandbox.h"
#include "propose/agent_socket.h"
#include "propose/proposer.h"

namespace kbeam {

struct AgentSettings {
  std::string name;     // "agent:claude", in every idea of this agent
  std::string command;  // for sh -c, in the workspace
  AgentAccess access;
  double session_s = 600;  // then the session ends
  double points_per_minute = 60;
  int submissions = 8;  // of one session
};
Json to_json(const AgentSettings& settings);
Result<AgentSettings> agent_settings_from_json(const Json& json);

struct AgentTools {
  std::filesystem::path kbeam;  // the program that is offered in the room
  std::filesystem::path contract_include;
  // check, bench, profile, ask. On a thread of the proposer's.
  AgentSocket::Handle run;
  const Clock* clock = nullptr;  // outlives the proposer
};

// Fails where no room can be made.
Result<std::unique_ptr<Proposer>> make_agent_proposer(const AgentSettings& settings,
                                                      const AgentTools& tools, NewsBell& bell);

}  // namespace kbeam
