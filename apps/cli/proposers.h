// Whom a campaign asks: --proposer, read and recorded when it begins, and made again from that
// record when it goes on.
#pragma once

#include "apps/cli/command.h"
#include "archive/archive.h"
#include "base/result.h"
#include "loop/research_loop.h"

namespace kbeam::cli {

// Into the setup of a new campaign, whose problem, grade and folder are known.
Result<void> choose_proposers(const Options& options, CampaignSetup& setup);

// Into the setup of one that goes on. An archive may come from anywhere: what agents are granted is
// said anew, and is nothing otherwise.
Result<void> restore_proposers(const Archive& archive, const Options& options,
                               CampaignSetup& setup);

}  // namespace kbeam::cli
