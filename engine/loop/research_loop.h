// The campaign, from a problem to a judged winner and a report. The only place that knows the order
// of the stages.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/result.h"
#include "loop/progress.h"
#include "model/campaign.h"
#include "model/problem.h"
#include "propose/proposer.h"

namespace kbeam {

struct CampaignSetup {
  Problem problem;
  Home home;
  CampaignConfig config;
  std::string grade;                 // one of the problem's
  std::filesystem::path run_folder;  // holds archive.sqlite, inbox/, report.html, attempts_log.md
  std::filesystem::path cache;       // compiled candidates, shared by all runs
  // Whom to ask beside the problem's own ideas, as settings (recorded, so that a resumed run asks
  // the same) and ready to be asked; called once, before any thread is pinned.
  Json proposers = Json::array();
  std::function<Result<std::vector<std::unique_ptr<Proposer>>>(NewsBell&)> make_proposers =
      [](NewsBell&) { return std::vector<std::unique_ptr<Proposer>>(); };
};

struct CampaignOutcome {
  StopReason stop_reason = StopReason::failed;
  Json summary;  // what `run --json` ends with
};

// Begins a run in `run_folder`, or goes on with the one that is there.
// `interrupted` ends it after the attempt in hand, without promotion; nothing is lost.
Result<CampaignOutcome> run_campaign(const CampaignSetup& setup, Progress& progress,
                                     const std::atomic<bool>& interrupted);

// What this machine and its tools are, for the record.
Result<Environment> probe_environment(const std::string& compiler_version,
                                      const std::vector<std::string>& compile_flags);

}  // namespace kbeam
