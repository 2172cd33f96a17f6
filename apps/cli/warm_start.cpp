#include "apps/cli/warm_start.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "apps/cli/runs.h"
#include "archive/archive.h"
#include "build/source_scan.h"

namespace kbeam::cli {
namespace {

constexpr std::size_t kMostBest = 8;

// Over the cases that are tuned for; nothing when one of them was not timed.
std::optional<double> speedup_of(const Evaluation& evaluation, const std::vector<Case>& cases) {
  double sum = 0;
  for (const Case& the_case : cases) {
    const auto found = std::find_if(
        evaluation.measurements.begin(), evaluation.measurements.end(),
        [&](const Measurement& measurement) { return measurement.case_name == the_case.name; });
    if (found == evaluation.measurements.end()) return std::nullopt;
    // The reference may have been a champion: what counts is the baseline, the same for all.
    const double reference = std::isnan(found->reference_speedup) ? 1 : found->reference_speedup;
    sum += std::log(found->summary.speedup * reference);
  }
  return std::exp(sum / static_cast<double>(cases.size()));
}

bool is_candidates_fault(Verdict verdict) {
  return verdict != Verdict::accepted && blame_of(verdict) == Blame::candidate;
}

}  // namespace

Result<WarmStart> read_warm_start(const Options& options, const SettingBench& bench) {
  Options run = options;
  run.values["RUN"] = {options.get("--warm-from")};
  ASSIGN_OR_RETURN(const std::filesystem::path folder, find_run(run));
  ASSIGN_OR_RETURN(const auto archive, Archive::open_read_only(folder / "archive.sqlite"));
  ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, archive->candidates());
  ASSIGN_OR_RETURN(const std::vector<Evaluation> evaluations, archive->evaluations());
  const std::string source = normalised_source(bench.source());
  std::map<std::string, KnobValues> settings;  // by candidate
  for (const Candidate& candidate : candidates) {
    if (candidate.rows.size() != 1) continue;
    const Row& row = candidate.rows.front();
    if (normalised_source(row.source) != source) continue;
    KnobValues knobs = bench.space().defaults();
    for (const auto& [name, value] : row.knobs) knobs[name] = value;
    if (bench.space().allows(knobs)) settings[candidate.id] = std::move(knobs);
  }
  if (settings.empty())
    return Error{ErrorCode::not_found,
                 "begin with what run " + folder.filename().string() + " knows",
                 "it tried no setting of " + options.get("FILE") + " that this space allows",
                 "name another run, or begin without --warm-from"};
  // Of several evaluations the last: confirmations come after screens.
  std::map<std::string, double> speedups;
  std::set<std::string> failed;
  for (const Evaluation& evaluation : evaluations) {
    if (!settings.contains(evaluation.candidate_id)) continue;
    if (is_candidates_fault(evaluation.verdict)) failed.insert(evaluation.candidate_id);
    if (const auto speedup = speedup_of(evaluation, bench.cases()))
      speedups[evaluation.candidate_id] = *speedup;
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [id, speedup] : speedups)
    if (!failed.contains(id)) order.emplace_back(-speedup, id);
  std::sort(order.begin(), order.end());
  WarmStart warm;
  for (const auto& [rank, id] : order)
    if (warm.best.size() < kMostBest && settings.at(id) != bench.space().defaults())
      warm.best.push_back(settings.at(id));
  for (const std::string& id : failed) warm.failures.push_back(settings.at(id));
  return warm;
}

}  // namespace kbeam::cli
