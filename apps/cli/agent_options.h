// --proposer agent:'COMMAND' and what belongs to it, read into settings.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/command.h"
#include "base/files.h"
#include "base/result.h"
#include "propose/agent_proposer.h"

namespace kbeam::cli {

inline constexpr std::string_view kAgentPrefix = "agent:";

// "agent:sh -c ..." is a command that is granted nothing; "agent:@NAME" is a preset, with what it
// lists. --agent-allow grants more, --agent-time limits a session.
Result<AgentSettings> read_agent(const std::string& proposer, const Options& options,
                                 const Home& home);

// What --agent-allow grants.
Result<AgentAccess> read_grants(const Options& options);

// --agent-allow, --agent-time
std::vector<OptionSpec> agent_options();

// What is granted, for people: "network; reads ~/.local". Empty: nothing.
std::string describe_grants(const AgentAccess& access);

}  // namespace kbeam::cli
