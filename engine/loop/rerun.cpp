#include "loop/rerun.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "loop/campaign_search.h"
#include "propose/agent_proposer.h"
#include "propose/llm_options.h"

namespace kbeam {
namespace {

std::string quoted(const std::string& word) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-./:=,+@").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

class CommandLine {
 public:
  explicit CommandLine(const std::string& problem) : text_("kbeam run " + quoted(problem)) {}
  void add(const std::string& option, const std::string& value) {
    text_ += " " + option + " " + quoted(value);
  }
  // What several proposers have in common is said once.
  void add_once(const std::string& option, const std::string& value) {
    if (said_.insert(option + " " + value).second) add(option, value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::set<std::string> said_;
};

std::string seconds(double s) {
  return fmt::format("{:g}s", s);
}

// A problem of this installation goes by its name, any other by its folder.
std::string problem_words(const CampaignConfig& config) {
  const Result<Home> home = find_home();
  const bool is_ours = config.problem_folder.empty() ||
                       (home.ok() && home->problems / config.problem_name == config.problem_folder);
  return is_ours ? config.problem_name : config.problem_folder;
}

void add_model(const Json& entry, CommandLine& line) {
  const Result<LlmOptions> options = llm_options_from_json(entry.value("llm", Json()));
  if (!options.ok()) return;
  for (const auto& [option, value] : command_words(*options)) line.add_once(option, value);
}

void add_agent(const AgentSettings& agent, CommandLine& line) {
  line.add("--proposer", "agent:" + agent.command);
  if (agent.access.network) line.add_once("--agent-allow", "network");
  for (const std::string& path : agent.access.read) line.add_once("--agent-allow", "read:" + path);
  for (const std::string& path : agent.access.write)
    line.add_once("--agent-allow", "write:" + path);
  for (const std::string& name : agent.access.environment)
    line.add_once("--agent-allow", "env:" + name);
  if (agent.session_s != AgentSettings().session_s)
    line.add_once("--agent-time", seconds(agent.session_s));
}

void add_proposers(const CampaignConfig& config, const Json& proposers, CommandLine& line) {
  std::vector<AgentSettings> agents;
  for (const Json& entry : proposers)
    if (entry.value("kind", "") == "agent")
      if (auto settings = agent_settings_from_json(entry.value("settings", Json())); settings.ok())
        agents.push_back(std::move(*settings));
  for (const std::string& name : proposer_names(config)) {
    const auto agent = std::find_if(agents.begin(), agents.end(),
                                    [&](const AgentSettings& one) { return one.name == name; });
    if (agent != agents.end()) {
      add_agent(*agent, line);
      agents.erase(agent);
      continue;
    }
    line.add("--proposer", name);
    for (const Json& entry : proposers)
      if (entry.value("kind", "") == "llm" && entry.value("name", "") == name)
        add_model(entry, line);
  }
}

}  // namespace

std::string rerun_command(const CampaignConfig& config, const Json& proposers) {
  CommandLine line(problem_words(config));
  line.add("--target", config.target);
  add_proposers(config, proposers, line);
  line.add("--seed", fmt::format("{}", config.seed));
  const CampaignConfig usual;
  if (config.search != usual.search) line.add("--search", config.search);
  if (config.beam != usual.beam) line.add("--beam", fmt::format("{}", config.beam));
  if (!config.grade.empty()) line.add("--grade", config.grade);
  const Budget& budget = config.budget;
  if (budget.wall_s > 0) line.add("--budget", seconds(budget.wall_s));
  if (budget.evaluations > 0) line.add("--evaluations", fmt::format("{}", budget.evaluations));
  if (budget.device_s > 0) line.add("--device-time", seconds(budget.device_s));
  if (budget.tokens > 0) line.add("--tokens", fmt::format("{}", budget.tokens));
  if (budget.money > 0) line.add("--money", fmt::format("{}", budget.money));
  if (!config.goal.empty()) line.add("--goal", config.goal);
  return line.text();
}

}  // namespace kbeam
