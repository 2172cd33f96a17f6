// How far budgets will go: from an earlier run before anything is measured, from the baseline once
// it is. Estimates; nothing is decided by them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "loop/baseline.h"
#include "loop/budget_watch.h"
#include "measure/stopping_rule.h"

namespace kbeam {

struct Pace {
  double evaluation_s = 0;         // wall time of one, confirmations included
  double evaluation_device_s = 0;  // of it on the device; 0: not known
  double rest_s = 0;               // baseline, promotion, report
};

struct EarlierRun {
  std::string run_id;
  Pace pace;
};
// The latest run in a folder that ended with a few evaluations of the same problem and target;
// nothing: there is none.
std::optional<EarlierRun> find_earlier_run(const std::filesystem::path& runs,
                                           const CampaignConfig& config);

// From the A/A control of a baseline: the same cases, the same work around each call.
Pace pace_of(const BaselineFacts& baseline, const StoppingRule& screen, double reserve_s);

// "an evaluation takes about 1.2 s (1.0 s of the device); --budget has room for about 90; the 40 of
// --evaluations take about 48 s". Without limits the pace alone.
std::string describe_room(const Pace& pace, const BudgetUse& use, const Budget& limits);

}  // namespace kbeam
