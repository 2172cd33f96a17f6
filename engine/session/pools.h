// The three pools of cases in an evaluation: how many of each passed, how fast they were, and what
// a private case must not tell. Pure.
#pragma once

#include <string_view>
#include <vector>

#include "model/evaluation.h"
#include "model/problem.h"

namespace kbeam {

std::string_view pool_word(Pool pool);  // "public"

// Fills in the results of the pools and the generality gap, and names the case that failed.
// `cases`: all that were asked for, in the order in which they ran; the first that has no accepted
// report is the one that failed.
void tally_pools(Evaluation& evaluation, const std::vector<Case>& cases);

// Puts one report in the place of those of the private cases: passed or failed, no figures, no
// names.
void silence_private_cases(Evaluation& evaluation, const std::vector<Case>& cases);

}  // namespace kbeam
