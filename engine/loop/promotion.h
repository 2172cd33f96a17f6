// The strict end of a campaign: the portfolio is frozen, checked on sealed inputs and on shapes
// between its rows, and measured against the baseline in fresh processes. Only what passes here is
// called a winner.
#pragma once

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
  // Where it failed, as a value of the regime axis: the row to blame. Unset when nothing failed or
  // no case did.
  std::optional<std::int64_t> failed_at;
};

// Empty for a winner: right on one thread and on all, and faster in geometric mean beyond the noise
// floor.
std::string why_not_won(const Promotion& promotion);

// `candidate` must be built. A verdict that is not accepted is in the evaluation.
Promotion promote(const MachineBench& bench, const BaselineFacts& baseline,
                  const Candidate& candidate);

// Small cases on both sides of every row boundary, square ones and not, families drawn from `seed`.
std::vector<Case> cases_between_rows(const Problem& problem, const Candidate& candidate,
                                     std::uint64_t seed);

}  // namespace kbeam
