// The folder that a coding agent works in: the problem in words, what the campaign knows, a source
// to begin from, and the contract's headers. Holds nothing that a proposer may not know.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "propose/proposer.h"

namespace kbeam {

// How the commands in AGENTS.md are to be typed.
enum class WorkspaceKind {
  room,    // in an agent's room: the campaign knows the problem and the run
  by_hand  // on a person's machine: `kbeam setup`
};

struct WorkspaceRequest {
  std::filesystem::path folder;  // made where it is not there
  std::filesystem::path contract_include;
  WorkspaceKind kind = WorkspaceKind::by_hand;
  Role role = Role::structural;
  std::string attempts;  // what attempts_log.md begins with; empty: what the context says
};

// Files that are there stay as they are, unless the kind is `room`, whose folder is new.
Result<void> write_workspace(const WorkspaceRequest& request, const ProposalContext& context);

// The instructions alone: AGENTS.md.
std::string agent_instructions(const WorkspaceRequest& request, const ProposalContext& context);

}  // namespace kbeam
