// The object that `kbeam run --json` ends with, and what the report needs, gathered from a
// campaign.
#pragma once

#include <optional>

#include "archive/archive.h"
#include "base/json.h"
#include "loop/baseline.h"
#include "loop/budget_watch.h"
#include "loop/promotion.h"
#include "model/campaign.h"
#include "report/report.h"

namespace kbeam {

struct CampaignFigures {
  const Problem* problem = nullptr;
  CampaignConfig config;
  Environment environment;
  const BaselineFacts* baseline = nullptr;  // null: stopped before it was measured
  const Promotion* promotion = nullptr;     // null: nothing was promoted
  std::string not_promoted_because;
  int evaluations = 0;
  double search_s = 0;  // the part of the run in which candidates were evaluated
  // Since the run began or was resumed: candidates screened, and the time of that alone.
  int screened_here = 0;
  double screening_s = 0;
  BudgetUse use;
  Budget limits;
  double overhead_fraction = 0;
  StopReason stop_reason = StopReason::running;
  std::filesystem::path run_folder;
};

Json summarise_campaign(const CampaignFigures& figures);

// Everything that report.html and attempts_log.md show, from an archive.
Result<ReportInput> gather_report(const Archive& archive, const Problem& problem);

}  // namespace kbeam
