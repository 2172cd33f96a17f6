// The options of `run` that belong to language models: whom to ask, and what that may cost.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "base/json.h"
#include "base/result.h"
#include "loop/research_loop.h"
#include "propose/llm_options.h"

namespace kbeam::cli {

std::vector<OptionSpec> model_options();

// Those of them that say how to reach a model, without the budgets.
std::vector<OptionSpec> model_access_options();

// The model at llm:URL, with what the options say of it.
Result<LlmOptions> read_model(const Options& options, const std::string& proposer);

// llm:URL and replay:RUN.
bool names_model(const std::string& proposer);
// Its entries in CampaignSetup::proposers: of a replay, whoever was asked in that run.
Result<Json> model_entries(const Options& options, const std::string& proposer);
// Once all proposers are chosen.
Result<void> choose_model_budgets(const Options& options, CampaignSetup& setup);

// What a round of each model will take and what the budgets have room for; empty: no model is
// asked.
std::string estimate_text(const CampaignSetup& setup);

}  // namespace kbeam::cli
