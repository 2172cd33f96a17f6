// kbeam mcp: the Model Context Protocol over stdin and stdout. A tool is a kbeam command, run as a
// child of its own, so that nothing it does can harm the server.
#include <fmt/core.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/cli/bench_tools.h"
#include "apps/cli/child_command.h"
#include "apps/cli/commands.h"
#include "apps/cli/mcp_server.h"
#include "base/files.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

class Scratch {
 public:
  static Result<Scratch> make() {
    ASSIGN_OR_RETURN(fs::path folder,
                     make_temporary_folder(fs::temp_directory_path(), "kbeam-mcp-"));
    return Scratch(std::move(folder));
  }
  Scratch(Scratch&& other) noexcept : folder_(std::exchange(other.folder_, {})) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  const fs::path& folder() const { return folder_; }

 private:
  explicit Scratch(fs::path folder) : folder_(std::move(folder)) {}
  fs::path folder_;
};

Result<ToolOutcome> run_tool(const McpTool& tool, const Json& arguments, const std::string& client,
                             const std::string& runs, const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(const Scratch scratch, Scratch::make());
  ASSIGN_OR_RETURN(std::vector<std::string> words, tool.command({arguments, scratch.folder()}));
  words.insert(words.begin() + 1, "--json");
  if (tool.takes_dir && !runs.empty()) words.insert(words.begin() + 1, "--dir=" + runs);
  ASSIGN_OR_RETURN(const ChildOutcome child, run_child_command({.words = std::move(words),
                                                                .speaker = client,
                                                                .timeout_s = tool.timeout_s,
                                                                .cancelled = cancelled}));
  if (child.timed_out && cancelled())
    return ToolOutcome{.json = {}, .complaint = {}, .cancelled = true};
  if (child.timed_out)
    return ToolOutcome{.json = {},
                       .complaint = fmt::format("it took more than {:.0f} s", tool.timeout_s)};
  const bool answered = child.exit_code == kDone || child.exit_code == kNo;
  if (!answered || child.last_line.empty())
    return ToolOutcome{.json = {}, .complaint = child.complaint};
  return ToolOutcome{.json = child.last_line, .complaint = {}};
}

}  // namespace

int mcp_command(const Options& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a client that is gone ends stdin too
  // Absolute: tools run where the server runs, whatever that is for its client.
  const std::string runs =
      options.has("--dir") ? fs::absolute(options.get("--dir")).string() : std::string();
  const auto send = [](const std::string& message) { std::cout << message << '\n' << std::flush; };
  const auto run = [&](const McpTool& tool, const Json& arguments, const std::string& client,
                       const std::function<bool()>& cancelled) {
    const Result<ToolOutcome> outcome = run_tool(tool, arguments, client, runs, cancelled);
    return outcome.ok() ? *outcome : ToolOutcome{.json = {}, .complaint = outcome.error().text()};
  };
  McpServer server(send, run);
  for (std::string line; std::getline(std::cin, line);)
    if (line.find_first_not_of(" \t\r") != std::string::npos) server.receive(line);
  server.finish();
  return kDone;
}

}  // namespace kbeam::cli
