// The loop as tools of the Model Context Protocol: their names, schemas, and the kbeam command that
// each stands for. Knows nothing of messages.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kbeam::cli {

struct ToolArgument {
  enum class Kind { text, list } kind = Kind::text;  // list: of texts
  std::string name;
  std::string description;
  bool is_required = false;
  std::vector<std::string> choices;  // of a text; empty: any
};

struct ToolCall {
  const Json& arguments;          // valid by the tool's schema
  std::filesystem::path scratch;  // an empty folder: sources that came as text are written here
};

struct McpTool {
  std::string name;
  std::string description;
  std::vector<ToolArgument> arguments;
  bool changes_state = false;
  double timeout_s = 60;
  // The command line behind `kbeam`, without --json and --dir.
  Result<std::vector<std::string>> (*command)(const ToolCall& call);
  bool takes_dir = true;  // the command has --dir
};

const std::vector<McpTool>& mcp_tools();

// As tools/list shows it.
Json describe(const McpTool& tool);

// Empty, or what is wrong with the arguments.
std::string mistake_in(const McpTool& tool, const Json& arguments);

}  // namespace kbeam::cli
