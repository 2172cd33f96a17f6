// What the campaign does for an agent in its room: check, bench, profile and ask, each as a command
// of kbeam in a process of its own that knows the problem and the run, which the agent cannot name.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "propose/agent_proposer.h"

namespace kbeam::cli {

struct AgentToolsRequest {
  std::string problem;  // folder
  std::string target;
  std::string grade;
  std::filesystem::path run_folder;
  std::string agent;  // its name, for what is written down
  std::filesystem::path contract_include;
};
Result<AgentTools> make_agent_tools(const AgentToolsRequest& request);

}  // namespace kbeam::cli
