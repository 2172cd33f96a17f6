// What part of a campaign's wall time is kept back for its promotion and its report. Pure.
#pragma once

#include <vector>

#include "loop/baseline.h"
#include "measure/stopping_rule.h"
#include "model/campaign.h"

namespace kbeam {

inline constexpr double kReportSeconds = 5;

struct PromotionOutlook {
  const StoppingRule& rule;
  const BaselineFacts& baseline;
  std::vector<Champion> champions;
  bool on_cpu = true;  // where a promotion has gates
  int all_cores = 1;
};

// What the first look of a promotion will take, from what the A/A control took: the same cases, the
// same work around each call, the baseline on one side and the champions on the other. A case that
// is close takes a second look.
double promotion_reserve_s(const PromotionOutlook& outlook);

}  // namespace kbeam
