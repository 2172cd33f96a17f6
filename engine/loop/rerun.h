// The command line that begins a run like a recorded one: for the reports. Names where a key is,
// never the key.
#pragma once

#include <string>

#include "base/json.h"
#include "model/campaign.h"

namespace kbeam {

// `proposers`: the settings of the run's event of that name.
std::string rerun_command(const CampaignConfig& config, const Json& proposers);

}  // namespace kbeam
