// Decides a recorded campaign again: every summary from its raw samples, every observation,
// champion, refusal and promotion from its summaries, and every choice of the search from what it
// had been told. What does not follow is a mistake, in words. Reads only; runs nothing.
#pragma once

#include <string>
#include <vector>

#include "archive/archive.h"
#include "base/result.h"
#include "search/search.h"

namespace kbeam {

struct Recomputed {
  int summaries = 0;  // of measurements
  int decisions = 0;  // observations, champions, refusals, promotions
  int choices = 0;    // candidates that the search chose
  std::vector<std::string> mistakes;
};

// `search` is a fresh one of the same campaign (make_search); without it choices are not decided
// again.
Result<Recomputed> recompute_decisions(const Archive& archive, Search* search);

}  // namespace kbeam
