// What of a run goes into the repository as the evidence behind a shipped kernel: compact, and made
// from loaded data. The archive itself, with every source and sample, stays where the run was made.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "report/report.h"

namespace kbeam {

// Writes campaigns/RUN_ID/ as a whole or not at all:
//   summary.json, campaign.json (configuration and environment), attempts_log.md, report.html,
//   winner/candidate.json and its source files, samples.jsonl (one line a measurement of every
//   promotion).
// Refuses a folder that is already there. Above `most_bytes` the log keeps only the newest
// attempts.
Result<void> publish_run(const ReportInput& input, const std::filesystem::path& campaigns,
                         std::size_t most_bytes = 2'000'000);

}  // namespace kbeam
