#include "propose/agent_presets.h"

#include <toml++/toml.h>

#include <sstream>
#include <utility>

#include "base/files.h"

namespace kbeam {
namespace {

Result<std::vector<std::string>> texts(const toml::table& agent, const char* name) {
  std::vector<std::string> values;
  const toml::node* const node = agent.get(name);
  if (node == nullptr) return values;
  const toml::array* const list = node->as_array();
  if (list == nullptr)
    return Error{ErrorCode::bad_input, "read agents", std::string(name) + " is no list",
                 "write " + std::string(name) + " = [\"...\"]"};
  for (const toml::node& one : *list) {
    const auto text = one.value<std::string>();
    if (!text)
      return Error{ErrorCode::bad_input, "read agents",
                   std::string(name) + " holds more than texts", "quote every value"};
    values.push_back(*text);
  }
  return values;
}

Result<AgentPreset> read_preset(const toml::table& agent) {
  AgentPreset preset;
  preset.name = agent["name"].value_or(std::string());
  preset.text = agent["text"].value_or(std::string());
  preset.command = agent["command"].value_or(std::string());
  preset.access.network = agent["network"].value_or(false);
  if (preset.name.empty() || preset.command.empty())
    return Error{ErrorCode::bad_input, "read agents", "an agent has no name or no command",
                 "give it both"};
  ASSIGN_OR_RETURN(preset.access.read, texts(agent, "read"));
  ASSIGN_OR_RETURN(preset.access.write, texts(agent, "write"));
  ASSIGN_OR_RETURN(preset.access.environment, texts(agent, "environment"));
  return preset;
}

}  // namespace

Result<std::vector<AgentPreset>> load_agent_presets(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const std::string text, read_file(file));
  try {
    const toml::table table = toml::parse(text, file.string());
    std::vector<AgentPreset> presets;
    const toml::array* const agents = table["agent"].as_array();
    if (agents == nullptr) return presets;
    for (const toml::node& node : *agents) {
      const toml::table* const agent = node.as_table();
      if (agent == nullptr) continue;
      ASSIGN_OR_RETURN(AgentPreset preset, read_preset(*agent));
      presets.push_back(std::move(preset));
    }
    return presets;
  } catch (const toml::parse_error& trouble) {
    std::ostringstream where;
    where << trouble.source().begin;
    return Error{ErrorCode::bad_input, "read " + file.string(),
                 std::string(trouble.description()) + " at " + where.str(), "mend the file"};
  }
}

}  // namespace kbeam
