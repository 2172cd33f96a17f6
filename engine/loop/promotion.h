// The strict end of a campaign: the portfolio is frozen, checked on sealed inputs and on shapes
// between its rows, and measured against the baseline in fresh processes. Only what passes here is
// called a winner.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "loop/baseline.h"
#include "measure/statistics.h"
#include "model/candidate.h"
#include "model/evaluation.h"

namespace kbeam {

inline constexpr int kAllCoresPairs = 8;

struct Promotion {
  Candidate winner;
  Evaluation evaluation;                // on one thread: the headline
  std::optional<Evaluation> all_cores;  // beside it, when the machine has more than one
  GeomeanSummary geomean;
  double confidence = 0.99;               // of its interval
  std::vector<std::string> slower_cases;  // timed cases on which it loses to the baseline
  double case_confidence = 0.99;          // of the intervals that say so
  int slower_allowed = 0;
  // Where it failed, as a value of the regime axis: the row to blame. Unset when nothing failed or
  // no case did.
  std::optional<std::int64_t> failed_at;
};

// What a promotion has to prove, and what it may take.
struct PromotionTerms {
  std::uint64_t sealed_seed = 0;  // drawn after the candidate's hash was written down
  // Promotions that this campaign may try: each risks its share of being fooled by noise.
  int attempts = 1;
  int slower_allowed = 0;  // timed cases that may lose to the baseline: the goal says so
  double most_s = std::numeric_limits<double>::infinity();  // for looks beyond the first
};

// Empty for a winner: right on one thread and on all, faster in geometric mean beyond the noise
// floor, and slower than the baseline on no more timed cases than the goal allows.
std::string why_not_won(const Promotion& promotion);

// Whether it ended in our own trouble, which is no evidence for or against the candidate.
bool engine_failed(const Promotion& promotion);

// The figures that follow from the evaluation at these confidences.
void summarise(Promotion& promotion);

// `candidate` must be built and frozen. A verdict that is not accepted is in the evaluation.
Promotion promote(const MachineBench& bench, const BaselineFacts& baseline,
                  const Candidate& candidate, const PromotionTerms& terms);

}  // namespace kbeam
