// A room for an agent's process: a root, processes and a network of its own, in which there is a
// workspace, the programs of the system, a socket to the campaign, and what was granted by name.
// No archive, oracle, seed or key can be named there. Needs user namespaces, and is refused
// without.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

namespace kbeam {

// What an agent may reach beyond its workspace. "~/x" is x in the home of whoever runs kbeam, and
// appears in the agent's own home.
struct AgentAccess {
  bool network = false;
  std::vector<std::string> read;         // paths
  std::vector<std::string> write;        // paths
  std::vector<std::string> environment;  // names of variables
};

struct AgentRoom {
  std::filesystem::path workspace;  // copied to /workspace, where the agent starts
  std::filesystem::path socket;     // appears as /run/kbeam/socket
  std::filesystem::path kbeam;      // the program; appears in the PATH
  std::filesystem::path root;       // an empty folder, on which the root is mounted
  AgentAccess access;
};

inline constexpr char kAgentSocketVariable[] = "KBEAM_SOCKET";
inline constexpr int kTooManyProcesses = 121;  // exit code of a room that was ended for them

class AgentSandbox {
 public:
  // Fails on a path that was granted and is not there.
  static Result<AgentSandbox> prepare(const AgentRoom& room);

  // For ProcessRequest with own_processes: the hook enters the room. Nothing that was started in
  // there outlives run_process.
  std::function<bool()> hook() const;
  std::vector<std::string> environment() const { return environment_; }

  struct Plan;

 private:
  std::shared_ptr<const Plan> plan_;
  std::vector<std::string> environment_;
};

// An error for a path that no room could have.
Result<void> check_grants(const AgentAccess& access);

// Empty, or why this machine cannot make such a room.
std::string why_no_agent_sandbox();

}  // namespace kbeam
