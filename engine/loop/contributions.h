// Who did what in a campaign, from its archive alone: requests and their outcomes, tokens, money,
// sources, how many were right, and what of the champions' speed each proposer, model and category
// of ideas brought.
#pragma once

#include "archive/archive.h"
#include "base/json.h"
#include "base/result.h"

namespace kbeam {

// {"total": {...}, "proposers": [{"name", ...}], "models": [...], "categories": [...]}. An entry
// has
//   requests, retries, outcomes {word: count}, tokens_in, tokens_out, tokens_estimated, money,
//   latency_s (mean of the replies)           of what was sent; absent for categories
//   ideas, sources, judged, accepted, success_rate, champions
//   gain   the factor by which its champions raised the geometric mean of the champions' speedups
// "models" has one entry for each Idea::source: "builtin", "manual", "llm:MODEL".
Result<Json> who_did_what(const Archive& archive);

}  // namespace kbeam
