// Known coding agents: the command that runs each in a workspace, and what it needs beyond. Nothing
// is granted to an agent that is not asked for by the name of its preset.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "propose/agent_sandbox.h"

namespace kbeam {

struct AgentPreset {
  std::string name;
  std::string text;
  std::string command;
  AgentAccess access;
};

// Every [[agent]] of the file.
Result<std::vector<AgentPreset>> load_agent_presets(const std::filesystem::path& file);

}  // namespace kbeam
