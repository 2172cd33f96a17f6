#include "apps/cli/agent_options.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "apps/cli/bench_tools.h"
#include "base/spelling.h"
#include "propose/agent_presets.h"

namespace kbeam::cli {
namespace {

Result<AgentPreset> find_preset(const std::string& name, const Home& home) {
  ASSIGN_OR_RETURN(const std::vector<AgentPreset> presets,
                   load_agent_presets(home.problems.parent_path() / "agents" / "presets.toml"));
  std::vector<std::string> names;
  for (const AgentPreset& preset : presets) {
    if (preset.name == name) return preset;
    names.push_back(preset.name);
  }
  const auto close = closest_word(name, names);
  return Error{ErrorCode::bad_input, "find agent preset '" + name + "'", "there is no such preset",
               close ? "did you mean " + *close + "?"
                     : fmt::format("choose among {}, or give a command: agent:'COMMAND'",
                                   fmt::join(names, ", "))};
}

Result<void> add_grant(const std::string& grant, AgentAccess& access) {
  const std::size_t colon = grant.find(':');
  const std::string kind = grant.substr(0, colon);
  const std::string what = colon == std::string::npos ? std::string() : grant.substr(colon + 1);
  if (grant == "network") {
    access.network = true;
  } else if (kind == "read" && !what.empty()) {
    access.read.push_back(what);
  } else if (kind == "write" && !what.empty()) {
    access.write.push_back(what);
  } else if (kind == "env" && !what.empty()) {
    if (std::getenv(what.c_str()) == nullptr)
      return Error{ErrorCode::bad_input, "grant an agent the variable " + what,
                   "that variable is not set", "export it, or take it from what is granted"};
    access.environment.push_back(what);
  } else {
    return Error{ErrorCode::bad_input, "read --agent-allow " + grant, "it grants nothing known",
                 "write network, read:PATH, write:PATH or env:NAME"};
  }
  return {};
}

// A name for the record of who proposed what: the command's first word, or the script that an
// interpreter is given.
std::string short_name(const std::string& command) {
  std::istringstream words(command);
  std::string word, next;
  words >> word >> next;
  const std::string program = std::filesystem::path(word).filename().string();
  const bool is_interpreter = program == "sh" || program == "bash" || program == "env" ||
                              program == "node" || program.starts_with("python");
  std::string name = is_interpreter && !next.empty() && next.front() != '-'
                         ? std::filesystem::path(next).stem().string()
                         : program;
  std::erase_if(name, [](unsigned char c) {
    return std::isalnum(c) == 0 && c != '_' && c != '-' && c != '.';
  });
  return name.empty() ? "command" : name.substr(0, 40);
}

}  // namespace

Result<AgentSettings> read_agent(const std::string& proposer, const Options& options,
                                 const Home& home) {
  AgentSettings settings;
  const std::string command = proposer.substr(kAgentPrefix.size());
  if (command.starts_with("@")) {
    ASSIGN_OR_RETURN(const AgentPreset preset, find_preset(command.substr(1), home));
    settings.name = std::string(kAgentPrefix) + preset.name;
    settings.command = preset.command;
    settings.access = preset.access;
  } else if (command.empty()) {
    return Error{ErrorCode::bad_input, "choose proposer agent:", "there is no command",
                 "write agent:'COMMAND', or agent:@NAME for a preset"};
  } else {
    settings.name = std::string(kAgentPrefix) + short_name(command);
    settings.command = command;
  }
  for (const std::string& grant : options.all("--agent-allow"))
    RETURN_IF_ERROR(add_grant(grant, settings.access));
  RETURN_IF_ERROR(check_grants(settings.access));
  ASSIGN_OR_RETURN(settings.session_s, parse_duration(options.get("--agent-time"), "--agent-time"));
  return settings;
}

Result<AgentAccess> read_grants(const Options& options) {
  AgentAccess access;
  for (const std::string& grant : options.all("--agent-allow"))
    RETURN_IF_ERROR(add_grant(grant, access));
  RETURN_IF_ERROR(check_grants(access));
  return access;
}

std::vector<OptionSpec> agent_options() {
  return {{"--agent-allow", "GRANT",
           "network, read:PATH, write:PATH or env:NAME for agents; may be given again", "nothing",
           OptionSpec::Kind::repeated},
          {"--agent-time", "TIME", "an agent's session ends after this", "10m"}};
}

std::string describe_grants(const AgentAccess& access) {
  std::string text = access.network ? "the network" : "";
  const auto add = [&](const char* kind, const std::vector<std::string>& list) {
    for (const std::string& one : list) text += (text.empty() ? "" : ", ") + (kind + one);
  };
  add("reading ", access.read);
  add("writing ", access.write);
  add("the variable ", access.environment);
  return text;
}

}  // namespace kbeam::cli
