// The options of `run` that belong to language models: whom to ask, and what that may cost.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "base/json.h"
#include "base/result.h"
#include "loop/research_loop.h"

namespace kbeam::cli {

std::vector<OptionSpec> model_options();

// llm:URL and replay:RUN.
bool names_model(const std::string& proposer);
// Its entry in CampaignSetup::proposers.
Result<Json> model_entry(const Options& options, const std::string& proposer);
// Once all proposers are chosen.
Result<void> choose_model_budgets(const Options& options, CampaignSetup& setup);

// What a round of each model will take and what the budgets have room for; empty: no model is
// asked.
std::string estimate_text(const CampaignSetup& setup);

}  // namespace kbeam::cli
