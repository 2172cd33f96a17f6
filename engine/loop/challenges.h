// What one confirmation says of each case on which a candidate challenged the champion. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/campaign.h"
#include "model/candidate.h"
#include "model/evaluation.h"
#include "model/problem.h"

namespace kbeam {

// A challenger of whom too little is known to call it faster, and nothing to call it slower.
struct Contender {
  std::string case_name;
  std::string candidate_id;
  std::string against;  // the champion of then
  double speedup = 0;   // over that champion, with the interval that did not decide
  double low = 0;
  double high = 0;
  // Above 1: the estimate lies farther above an even race than half of its interval below it.
  double lean() const { return speedup * low; }
};

struct Settlement {
  Champion champion;  // the challenger; its speed where it was crowned
  bool crowned = false;
  std::string why;
  std::optional<Contender> contender;
};

// Nothing when the engine failed: that is no evidence.
std::vector<Settlement> settle_cases(const Candidate& candidate, const std::vector<Case>& cases,
                                     const Evaluation& confirmation,
                                     const std::vector<Champion>& champions);

}  // namespace kbeam
