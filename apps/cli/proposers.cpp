#include "apps/cli/proposers.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "apps/cli/agent_options.h"
#include "apps/cli/agent_tools.h"
#include "apps/cli/model_options.h"
#include "loop/campaign_search.h"
#include "loop/model_proposers.h"
#include "propose/agent_proposer.h"

namespace kbeam::cli {
namespace {

// One entry of the setup's `proposers`: {"kind": "agent", "settings": {...}}.
Result<std::unique_ptr<Proposer>> make_proposer(const Json& entry, const AgentToolsRequest& about,
                                                NewsBell& bell) {
  const std::string kind = entry.value("kind", "");
  if (kind != "agent")
    return Error{ErrorCode::bad_input, "ask a proposer of kind '" + kind + "'",
                 "this kbeam knows none", "use the kbeam that began the run, or a newer one"};
  ASSIGN_OR_RETURN(const AgentSettings settings,
                   agent_settings_from_json(entry.value("settings", Json())));
  AgentToolsRequest request = about;
  request.agent = settings.name;
  ASSIGN_OR_RETURN(const AgentTools tools, make_agent_tools(request));
  return make_agent_proposer(settings, tools, bell);
}

// Called once, before any thread is pinned.
void make_later(CampaignSetup& setup) {
  const AgentToolsRequest about{.problem = setup.problem.folder.string(),
                                .target = setup.config.target,
                                .grade = setup.grade,
                                .run_folder = setup.run_folder,
                                .agent = {},
                                .contract_include = setup.home.contract_include};
  setup.make_proposers = [about, entries = setup.proposers, seed = setup.config.seed](
                             NewsBell& bell) -> Result<std::vector<std::unique_ptr<Proposer>>> {
    std::vector<std::unique_ptr<Proposer>> proposers;
    for (const Json& entry : entries) {
      ASSIGN_OR_RETURN(auto proposer, asks_model(entry) ? make_model_proposer(entry, bell, seed)
                                      : replays_agent(entry) ? make_replayed_agent(entry)
                                                             : make_proposer(entry, about, bell));
      proposers.push_back(std::move(proposer));
    }
    return proposers;
  };
}

// Whoever reads who did what tells two agents of one script apart: "agent:sh", "agent:sh-2".
std::string make_unlike(const std::string& name, const Json& proposers) {
  const auto is_taken = [&](const std::string& wanted) {
    return std::any_of(proposers.begin(), proposers.end(), [&](const Json& entry) {
      return entry.value("kind", "") == "agent" && entry["settings"].value("name", "") == wanted;
    });
  };
  std::string unlike = name;
  for (int number = 2; is_taken(unlike); ++number) unlike = fmt::format("{}-{}", name, number);
  return unlike;
}

}  // namespace

Result<void> choose_proposers(const Options& options, CampaignSetup& setup) {
  std::vector<std::string> wanted = options.all("--proposer");
  if (wanted.empty()) wanted = {"builtin"};
  setup.config.proposer.clear();
  for (const std::string& one : wanted) {
    std::string name = one;
    if (one.starts_with(kAgentPrefix)) {
      ASSIGN_OR_RETURN(AgentSettings settings, read_agent(one, options, setup.home));
      settings.name = make_unlike(settings.name, setup.proposers);
      if (const std::string grants = describe_grants(settings.access); !grants.empty())
        fmt::print(stderr, "{} is granted: {}\n", settings.name, grants);
      setup.proposers.push_back({{"kind", "agent"}, {"settings", to_json(settings)}});
      name = settings.name;
    } else if (names_model(one)) {
      ASSIGN_OR_RETURN(const Json entries, model_entries(options, one));
      for (const Json& entry : entries) setup.proposers.push_back(entry);
    } else if (one != "builtin") {
      return Error{ErrorCode::bad_input, "choose proposer '" + one + "'",
                   "this kbeam has builtin, llm:URL, replay:RUN and agent:'COMMAND', and `kbeam "
                   "submit` for candidates by hand",
                   "leave --proposer out, or see docs/models.md and docs/agents.md"};
    }
    setup.config.proposer +=
        (setup.config.proposer.empty() ? "" : std::string(kBetweenProposers)) + name;
  }
  const bool any_agent =
      std::any_of(setup.proposers.begin(), setup.proposers.end(),
                  [](const Json& entry) { return entry.value("kind", "") == "agent"; });
  for (const char* option : {"--agent-allow", "--agent-time"})
    if (options.has(option) && !any_agent)
      return Error{ErrorCode::bad_input, "run with " + std::string(option),
                   "no agent is asked in this campaign", "add --proposer agent:'COMMAND'"};
  make_later(setup);
  return choose_model_budgets(options, setup);
}

Result<void> restore_proposers(const Archive& archive, const Options& options,
                               CampaignSetup& setup) {
  ASSIGN_OR_RETURN(const std::optional<Json> recorded, archive.last_event("proposers"));
  if (recorded) setup.proposers = recorded->value("settings", Json::array());
  for (Json& entry : setup.proposers) {
    if (entry.value("kind", "") != "agent") continue;
    ASSIGN_OR_RETURN(AgentSettings settings,
                     agent_settings_from_json(entry.value("settings", Json())));
    ASSIGN_OR_RETURN(settings.access, read_grants(options));
    const std::string grants = describe_grants(settings.access);
    fmt::print(stderr, "{} is granted: {}\n", settings.name,
               grants.empty() ? "nothing; --agent-allow says what" : grants);
    entry["settings"] = to_json(settings);
  }
  make_later(setup);
  return {};
}

}  // namespace kbeam::cli
