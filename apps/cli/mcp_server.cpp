#include "apps/cli/mcp_server.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/foreign_json.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

// The revisions that begin with a handshake, oldest first. What is used here is the same in all.
constexpr std::array<std::string_view, 4> kVersions{"2024-11-05", "2025-03-26", "2025-06-18",
                                                    "2025-11-25"};
constexpr std::string_view kBatches = "2025-03-26";            // only this one has them
constexpr std::string_view kStructuredContent = "2025-06-18";  // since this one

constexpr int kParseError = -32700;
constexpr int kInvalidRequest = -32600;
constexpr int kMethodNotFound = -32601;
constexpr int kInvalidParameters = -32602;

constexpr std::size_t kMostCalls = 4;  // they share two processors and one timing lock

bool is_id(const Json& id) {
  return id.is_string() || id.is_number_integer();
}

std::string negotiate(const Json& asked) {
  if (asked.is_string() &&
      std::find(kVersions.begin(), kVersions.end(), asked.get<std::string>()) != kVersions.end())
    return asked.get<std::string>();
  return std::string(kVersions.back());
}

const McpTool* find_tool(const std::string& name) {
  for (const McpTool& tool : mcp_tools())
    if (tool.name == name) return &tool;
  return nullptr;
}

}  // namespace

McpServer::~McpServer() {
  for (auto& [id, call] : calls_) call->cancelled = true;
  finish();
}

void McpServer::finish() {
  for (auto& [id, call] : calls_) call->thread.join();
  calls_.clear();
}

void McpServer::receive(const std::string& line) {
  const Json message = parse_foreign_json(line);
  if (message.is_discarded()) return refuse_line("this is no JSON, or nests too deep");
  if (!message.is_array()) return receive_message(message);
  if (version_ != kBatches || message.empty())
    return refuse(nullptr, kInvalidRequest,
                  message.empty() ? "the batch is empty" : "this revision has no batches");
  for (const Json& one : message) receive_message(one);
}

void McpServer::refuse_line(const std::string& why) {
  refuse(nullptr, kParseError, why);
}

void McpServer::receive_message(const Json& message) {
  collect_ended();
  const bool has_id = message.is_object() && message.contains("id");
  const Json id = has_id ? message["id"] : Json();
  if (!message.is_object() || message.value("jsonrpc", Json()) != "2.0")
    return refuse(is_id(id) ? id : Json(), kInvalidRequest, "this is no JSON-RPC 2.0 message");
  if (message.contains("result") || message.contains("error"))
    return;  // an answer: this server asks for nothing
  if (!message.contains("method") || !message["method"].is_string() || (has_id && !is_id(id)))
    return refuse(is_id(id) ? id : Json(), kInvalidRequest,
                  "a request has a method and a text or whole number as id");
  const Json parameters = message.value("params", Json::object());
  const std::string method = message["method"].get<std::string>();
  if (!has_id) return notify(method, parameters);
  if (!parameters.is_object())
    return refuse(id, kInvalidParameters, "parameters are given by name");
  request(id, method, parameters);
}

void McpServer::request(const Json& id, const std::string& method, const Json& parameters) {
  if (method == "initialize") return initialize(id, parameters);
  if (method == "ping") return answer(id, Json::object());
  if (method != "tools/list" && method != "tools/call")
    return refuse(id, kMethodNotFound, "there is no method " + method);
  if (version_.empty()) return refuse(id, kInvalidRequest, "the first request is initialize");
  if (method == "tools/call") return call_tool(id, parameters);
  Json tools = Json::array();
  for (const McpTool& tool : mcp_tools()) tools.push_back(describe(tool));
  answer(id, {{"tools", std::move(tools)}});
}

void McpServer::notify(const std::string& method, const Json& parameters) {
  if (method != "notifications/cancelled" || !parameters.is_object()) return;
  const auto call = calls_.find(parameters.value("requestId", Json()).dump());
  if (call != calls_.end()) call->second->cancelled = true;
}

void McpServer::initialize(const Json& id, const Json& parameters) {
  if (!version_.empty()) return refuse(id, kInvalidRequest, "already initialized");
  if (!parameters.contains("protocolVersion") || !parameters["protocolVersion"].is_string())
    return refuse(id, kInvalidParameters, "initialize names a protocolVersion");
  version_ = negotiate(parameters["protocolVersion"]);
  const Json client = parameters.value("clientInfo", Json::object());
  if (client.is_object() && client.value("name", Json()).is_string())
    client_ = "mcp client " + client["name"].get<std::string>();
  answer(id,
         {{"protocolVersion", version_},
          {"capabilities", {{"tools", {{"listChanged", false}}}}},
          {"serverInfo", {{"name", "kbeam"}, {"version", KBEAM_VERSION}}},
          {"instructions",
           "kbeam searches for faster compute kernels. Read a problem with list_problems, write "
           "a candidate, check it, bench it, and propose it to a running campaign."}});
}

void McpServer::call_tool(const Json& id, const Json& parameters) {
  if (!parameters.contains("name") || !parameters["name"].is_string())
    return refuse(id, kInvalidParameters, "tools/call names a tool");
  const std::string name = parameters["name"].get<std::string>();
  const McpTool* const tool = find_tool(name);
  if (tool == nullptr) return refuse(id, kInvalidParameters, "there is no tool " + name);
  const Json arguments = parameters.value("arguments", Json::object());
  if (!arguments.is_object()) return refuse(id, kInvalidParameters, "arguments are an object");
  // A mistake in the arguments is for the model to mend, not an error of the protocol.
  if (const std::string mistake = mistake_in(*tool, arguments); !mistake.empty())
    return answer(id, tool_result({.json = {}, .complaint = name + ": " + mistake}));
  if (calls_.contains(id.dump()))
    return refuse(id, kInvalidRequest, "a request with this id is under way");
  if (calls_.size() >= kMostCalls)
    return answer(
        id, tool_result({.json = {}, .complaint = "too many calls are under way: wait for one"}));
  start_call(id, *tool, arguments);
}

void McpServer::start_call(const Json& id, const McpTool& tool, const Json& arguments) {
  Call& call = *(calls_[id.dump()] = std::make_unique<Call>());
  call.thread = std::thread([this, id, &tool, arguments, &call, client = client_] {
    const ToolOutcome outcome =
        run_tool_(tool, arguments, client, [&call] { return call.cancelled.load(); });
    if (!call.cancelled && !outcome.cancelled) answer(id, tool_result(outcome));
    call.ended = true;
  });
}

void McpServer::collect_ended() {
  std::erase_if(calls_, [](auto& entry) {
    if (!entry.second->ended) return false;
    entry.second->thread.join();
    return true;
  });
}

Json McpServer::tool_result(const ToolOutcome& outcome) const {
  const bool failed = !outcome.complaint.empty();
  Json result{
      {"content",
       Json::array({{{"type", "text"}, {"text", failed ? outcome.complaint : outcome.json}}})},
      {"isError", failed}};
  if (failed || version_ < kStructuredContent) return result;
  const Json parsed = parse_foreign_json(outcome.json);
  if (parsed.is_object()) result["structuredContent"] = parsed;
  if (parsed.is_array()) result["structuredContent"] = {{"items", parsed}};
  return result;
}

void McpServer::answer(const Json& id, const Json& result) {
  send({{"jsonrpc", "2.0"}, {"id", id}, {"result", result}});
}

void McpServer::refuse(const Json& id, int code, const std::string& message) {
  send({{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}});
}

void McpServer::send(const Json& message) {
  const std::lock_guard guard(sending_);
  send_(json_text(message));
}

}  // namespace kbeam::cli
