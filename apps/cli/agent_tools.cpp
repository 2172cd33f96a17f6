#include "apps/cli/agent_tools.h"

#include <algorithm>
#include <cctype>
#include <utility>
#include <vector>

#include "apps/cli/child_command.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/private_folder.h"

namespace kbeam::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kMost_s = 300;
constexpr std::size_t kMostValueBytes = 4000;

struct Allowed {
  const char* command;
  std::vector<std::string> options;  // that an agent may give, of which each takes a value
  bool takes_file = true;
  bool gives_way = true;  // to the campaign's measurements
};
const std::vector<Allowed>& allowed_commands() {
  static const std::vector<Allowed> commands{{"check", {"--case", "--knob"}},
                                             {"bench", {"--knob"}, true, false},
                                             {"profile", {"--case", "--knob"}},
                                             {"ask", {}, false}};
  return commands;
}

// The ending alone: it says what the file is for.
std::string plain_ending(const std::string& name) {
  return fs::path(name).extension() == ".cu" ? ".cu" : ".cpp";
}

std::string stem_of(const std::string& name) {
  std::string stem = fs::path(name).stem().string().substr(0, 60);
  std::erase_if(stem, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_' && c != '-'; });
  return stem.empty() ? "candidate" : stem;
}

AgentReply refuse(const std::string& why) {
  return {2, "", "kbeam: " + why + "\n"};
}

Result<AgentReply> run(const AgentToolsRequest& about, const Allowed& allowed,
                       const AgentRequest& request, const std::function<bool()>& cancelled) {
  std::vector<std::string> words{allowed.command};
  if (request.command == "ask") {
    words.push_back("--plain");  // an agent spends no money of others
    words.push_back("--dir=" + about.run_folder.parent_path().string());
  } else {
    words.push_back("--problem=" + about.problem);
    if (request.command != "profile") words.push_back("--public-only");
    if (request.command != "profile" && !about.grade.empty())
      words.push_back("--grade=" + about.grade);
  }
  for (const auto& [name, values] : request.arguments) {
    if (name == "QUESTION") continue;
    if (name == "--json") {
      words.push_back(name);
      continue;
    }
    if (std::find(allowed.options.begin(), allowed.options.end(), name) == allowed.options.end())
      return refuse(request.command + " has no " + name + " here");
    for (const std::string& value : values) words.push_back(name + "=" + value);
  }
  words.push_back("--");
  ASSIGN_OR_RETURN(const PrivateFolder held, PrivateFolder::make("kbeam-tool-"));
  const fs::path& folder = held.path();
  if (allowed.takes_file) {
    const fs::path file = folder / (stem_of(request.file_name) + plain_ending(request.file_name));
    RETURN_IF_ERROR(write_file(file, request.source));
    words.push_back(file.string());
  } else {
    words.push_back(about.run_folder.filename().string());
    const auto question = request.arguments.find("QUESTION");
    words.push_back(question == request.arguments.end() || question->second.empty()
                        ? std::string()
                        : question->second.back());
  }
  ASSIGN_OR_RETURN(ChildOutcome child, run_child_command({.words = std::move(words),
                                                          .speaker = about.agent,
                                                          .timeout_s = kMost_s,
                                                          .cancelled = cancelled,
                                                          .gives_way = allowed.gives_way}));
  if (child.timed_out) return AgentReply{3, "", "kbeam: it took too long\n"};
  // Where the file lay is nobody's business.
  for (std::string* text : {&child.output, &child.complaint})
    for (std::size_t at = 0; (at = text->find(folder.string() + "/")) != std::string::npos;)
      text->erase(at, folder.string().size() + 1);
  const bool well = child.exit_code == 0 || child.exit_code == 1;
  return AgentReply{child.exit_code, std::move(child.output),
                    well ? std::string() : std::move(child.complaint)};
}

bool is_too_long(const AgentRequest& request) {
  for (const auto& [name, values] : request.arguments)
    for (const std::string& value : values)
      if (value.size() > kMostValueBytes || value.find('\0') != std::string::npos) return true;
  return false;
}

}  // namespace

Result<AgentTools> make_agent_tools(const AgentToolsRequest& about) {
  std::error_code trouble;
  AgentTools tools;
  tools.kbeam = fs::read_symlink("/proc/self/exe", trouble);
  if (trouble)
    return Error{ErrorCode::io, "find the kbeam program", trouble.message(), "mount /proc"};
  tools.contract_include = about.contract_include;
  static const SystemClock clock;
  tools.clock = &clock;
  tools.run = [about](const AgentRequest& request, const std::function<bool()>& cancelled) {
    const auto& commands = allowed_commands();
    const auto allowed = std::find_if(commands.begin(), commands.end(), [&](const Allowed& one) {
      return request.command == one.command;
    });
    if (allowed == commands.end())
      return refuse("there is no command " + request.command.substr(0, 40));
    if (is_too_long(request)) return refuse("a value is too long");
    const Result<AgentReply> reply = run(about, *allowed, request, cancelled);
    return reply.ok() ? *reply : AgentReply{3, "", "kbeam: " + reply.error().text() + "\n"};
  };
  return tools;
}

}  // namespace kbeam::cli
