// Cases that nobody could have seen: drawn from a seed that exists only once the candidate is
// frozen. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "model/candidate.h"
#include "model/problem.h"

namespace kbeam {

struct SealedCases {
  // Small, to be checked: on both sides of every boundary between rows, and near every timed case;
  // families drawn.
  std::vector<Case> checked;
  // As large as the timed cases and of their families, at sizes near theirs: to be timed too.
  std::vector<Case> timed;
};

SealedCases draw_sealed_cases(const Problem& problem, const std::vector<Row>& rows,
                              std::uint64_t seed);

}  // namespace kbeam
