#include "loop/challenges.h"

#include <fmt/core.h>

#include <algorithm>

namespace kbeam {

std::vector<Settlement> settle_cases(const Candidate& candidate, const std::vector<Case>& cases,
                                     const Evaluation& confirmation,
                                     const std::vector<Champion>& champions) {
  std::vector<Settlement> settled;
  if (confirmation.verdict == Verdict::engine_failed) return settled;
  for (const Case& the_case : cases) {
    Settlement& one = settled.emplace_back();
    one.champion = {
        .case_name = the_case.name, .candidate_id = candidate.id, .family = candidate.family};
    const auto found = std::find_if(
        confirmation.measurements.begin(), confirmation.measurements.end(),
        [&](const Measurement& measurement) { return measurement.case_name == the_case.name; });
    if (found == confirmation.measurements.end()) {
      one.why = confirmation.reason;
      continue;
    }
    const PairedSummary& summary = found->summary;
    const auto before = std::ranges::find(champions, the_case.name, &Champion::case_name);
    one.crowned = summary.comparison == Comparison::faster;
    if (!one.crowned) {
      one.why =
          fmt::format("{} {:.3f}x [{:.3f}, {:.3f}] against the champion",
                      to_string(summary.comparison), summary.speedup, summary.low, summary.high);
      if (before != champions.end() && summary.comparison != Comparison::slower)
        one.contender = Contender{.case_name = the_case.name,
                                  .candidate_id = candidate.id,
                                  .against = before->candidate_id,
                                  .speedup = summary.speedup,
                                  .low = summary.low,
                                  .high = summary.high};
      continue;
    }
    double scale = 1;
    if (before != champions.end()) {
      scale = before->speedup;
      one.champion.version = before->version + 1;
    }
    one.champion.speedup = summary.speedup * scale;
    one.champion.low = summary.low * scale;
    one.champion.high = summary.high * scale;
    one.why = fmt::format("{}: {:.3f}x [{:.3f}, {:.3f}] the champion before", confirmation.id,
                          summary.speedup, summary.low, summary.high);
  }
  return settled;
}

}  // namespace kbeam
