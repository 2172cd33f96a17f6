// A Model Context Protocol server: JSON-RPC 2.0 messages in, messages out. Knows neither the
// transport nor how a tool does its work.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "apps/cli/mcp_tools.h"
#include "base/json.h"

namespace kbeam::cli {

struct ToolOutcome {
  std::string json;        // what the command printed; empty: nothing
  std::string complaint;   // when it could not do its work
  bool cancelled = false;  // nobody waits for the answer any more
};

class McpServer {
 public:
  // Called on any thread, one message a time: a line without its end.
  using Send = std::function<void(const std::string& message)>;
  // Runs a tool to its end; `cancelled` is to be asked now and then. `client` is who asks.
  using RunTool =
      std::function<ToolOutcome(const McpTool& tool, const Json& arguments,
                                const std::string& client, const std::function<bool()>& cancelled)>;

  McpServer(Send send, RunTool run_tool) : send_(std::move(send)), run_tool_(std::move(run_tool)) {}
  // Ends the calls that are under way.
  ~McpServer();
  McpServer(const McpServer&) = delete;
  McpServer& operator=(const McpServer&) = delete;

  // One line of the peer. Calls of tools go on behind its back.
  void receive(const std::string& line);

  // Instead of a line that cannot be read.
  void refuse_line(const std::string& why);

  // Until no call is under way.
  void finish();

 private:
  struct Call {
    std::thread thread;
    std::atomic<bool> cancelled{false};
    std::atomic<bool> ended{false};
  };

  void receive_message(const Json& message);
  void request(const Json& id, const std::string& method, const Json& parameters);
  void notify(const std::string& method, const Json& parameters);
  void initialize(const Json& id, const Json& parameters);
  void call_tool(const Json& id, const Json& parameters);
  void start_call(const Json& id, const McpTool& tool, const Json& arguments);
  Json tool_result(const ToolOutcome& outcome) const;
  void collect_ended();
  void answer(const Json& id, const Json& result);
  void refuse(const Json& id, int code, const std::string& message);
  void send(const Json& message);

  Send send_;
  RunTool run_tool_;
  std::mutex sending_;
  std::string version_;  // negotiated; empty before
  std::string client_ = "an mcp client";
  std::map<std::string, std::unique_ptr<Call>> calls_;  // by the text of their ids
};

}  // namespace kbeam::cli
