// What one confirmation says of each case on which a candidate challenged the champion. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/campaign.h"
#include "model/candidate.h"
#include "model/evaluation.h"
#include "model/problem.h"

namespace kbeam {

struct Settlement {
  Champion champion;  // the challenger; its speed where it was crowned
  bool crowned = false;
  std::string why;
};

// Nothing when the engine failed: that is no evidence.
std::vector<Settlement> settle_cases(const Candidate& candidate, const std::vector<Case>& cases,
                                     const Evaluation& confirmation,
                                     const std::vector<Champion>& champions);

}  // namespace kbeam
