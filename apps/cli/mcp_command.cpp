// kbeam mcp: the Model Context Protocol over stdin and stdout. A tool is a kbeam command, run as a
// child of its own, so that nothing it does can harm the server.
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/cli/bench_tools.h"
#include "apps/cli/child_command.h"
#include "apps/cli/commands.h"
#include "apps/cli/mcp_server.h"
#include "base/private_folder.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostMessageBytes = 8 << 20;  // a source has 512 KiB at most

// False at the end of the input. What a line has beyond `most` and a byte is not kept.
bool read_line(std::istream& input, std::size_t most, std::string& line) {
  line.clear();
  std::streambuf& bytes = *input.rdbuf();
  bool any = false;
  for (int c = bytes.sbumpc(); c != std::char_traits<char>::eof(); c = bytes.sbumpc()) {
    any = true;
    if (c == '\n') return true;
    if (line.size() <= most) line += static_cast<char>(c);
  }
  return any;
}

// Nobody can read what is answered: a client that only closed its own end still waits for it.
bool client_is_gone() {
  pollfd output{STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) > 0;
}

Result<ToolOutcome> run_tool(const McpTool& tool, const Json& arguments, const std::string& client,
                             const std::string& runs, const std::function<bool()>& cancelled) {
  ASSIGN_OR_RETURN(const PrivateFolder scratch, PrivateFolder::make("kbeam-mcp-"));
  ASSIGN_OR_RETURN(std::vector<std::string> words, tool.command({arguments, scratch.path()}));
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
    const Result<ToolOutcome> outcome =
        run_tool(tool, arguments, client, runs, [&] { return cancelled() || client_is_gone(); });
    return outcome.ok() ? *outcome : ToolOutcome{.json = {}, .complaint = outcome.error().text()};
  };
  McpServer server(send, run);
  for (std::string line; read_line(std::cin, kMostMessageBytes, line);)
    if (line.size() > kMostMessageBytes)
      server.refuse_line(fmt::format("a message has at most {} bytes", kMostMessageBytes));
    else if (line.find_first_not_of(" \t\r") != std::string::npos)
      server.receive(line);
  server.finish();
  return kDone;
}

}  // namespace kbeam::cli
