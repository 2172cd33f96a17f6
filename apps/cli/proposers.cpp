#include "apps/cli/proposers.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/model_options.h"
#include "loop/campaign_search.h"
#include "loop/model_proposers.h"

namespace kbeam::cli {
namespace {

// Called once, before any thread is pinned.
void make_later(CampaignSetup& setup) {
  setup.make_proposers = [entries = setup.proposers, seed = setup.config.seed](
                             NewsBell& bell) -> Result<std::vector<std::unique_ptr<Proposer>>> {
    std::vector<std::unique_ptr<Proposer>> proposers;
    for (const Json& entry : entries) {
      if (!asks_model(entry))
        return Error{ErrorCode::bad_input,
                     "ask a proposer of kind '" + entry.value("kind", "") + "'",
                     "this kbeam knows none", "use the kbeam that began the run, or a newer one"};
      ASSIGN_OR_RETURN(auto proposer, make_model_proposer(entry, bell, seed));
      proposers.push_back(std::move(proposer));
    }
    return proposers;
  };
}

}  // namespace

Result<void> choose_proposers(const Options& options, CampaignSetup& setup) {
  std::vector<std::string> wanted = options.all("--proposer");
  if (wanted.empty()) wanted = {"builtin"};
  setup.config.proposer.clear();
  for (const std::string& one : wanted) {
    if (names_model(one)) {
      ASSIGN_OR_RETURN(Json entry, model_entry(options, one));
      setup.proposers.push_back(std::move(entry));
    } else if (one != "builtin") {
      return Error{ErrorCode::bad_input, "choose proposer '" + one + "'",
                   "this kbeam has builtin, llm:URL and replay:RUN, and `kbeam submit` for "
                   "candidates by hand",
                   "leave --proposer out, or see docs/models.md"};
    }
    setup.config.proposer +=
        (setup.config.proposer.empty() ? "" : std::string(kBetweenProposers)) + one;
  }
  make_later(setup);
  return choose_model_budgets(options, setup);
}

Result<void> restore_proposers(const Archive& archive, CampaignSetup& setup) {
  ASSIGN_OR_RETURN(const std::optional<Json> recorded, archive.last_event("proposers"));
  if (recorded) setup.proposers = recorded->value("settings", Json::array());
  make_later(setup);
  return {};
}

}  // namespace kbeam::cli
