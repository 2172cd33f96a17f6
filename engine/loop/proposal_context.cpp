#include "loop/proposal_context.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "propose/problem_statement.h"

namespace kbeam {
namespace {

constexpr double kNear = 0.9;  // of a champion's speed on some case
constexpr std::size_t kMostNearMisses = 6;
constexpr std::size_t kMostDeadEnds = 12;
constexpr std::size_t kMostIdeas = 200;
constexpr std::size_t kMostSources = 3;

double speedup_of(const std::vector<Champion>& champions, const std::string& case_name) {
  for (const Champion& champion : champions)
    if (champion.case_name == case_name) return champion.speedup;
  return 1;
}

// The best share of a champion's speed; 0 when it was not accepted.
double nearness(const AttemptBrief& brief, const std::vector<Champion>& champions) {
  double nearest = 0;
  for (const auto& [case_name, speedup] : brief.speedup)
    nearest = std::max(nearest, speedup / speedup_of(champions, case_name));
  return nearest;
}

bool is_wrong_by_little(Verdict verdict) {
  return verdict == Verdict::wrong_value || verdict == Verdict::not_finite ||
         verdict == Verdict::failed_private || verdict == Verdict::not_repeatable;
}

SourceBrief brief_of_row(const Row& row, std::string title) {
  return {.title = std::move(title),
          .source_name = row.source_name,
          .source = row.source,
          .knobs = describe_knobs(row.knobs)};
}

std::vector<SourceBrief> champion_sources(const Search& search,
                                          const std::vector<Champion>& champions) {
  std::vector<SourceBrief> sources;
  std::map<std::string, std::size_t> known;  // by source text
  for (const Champion& champion : champions) {
    const auto candidate = search.find(champion.candidate_id);
    if (!candidate || candidate->rows.empty()) continue;
    const Row& row = candidate->rows.front();
    const std::string holds = fmt::format("champion of {} ({:.2f} x the baseline, family {})",
                                          champion.case_name, champion.speedup, champion.family);
    const auto [found, is_new] = known.emplace(row.source, sources.size());
    if (!is_new)
      sources[found->second].title += "; " + holds;
    else if (sources.size() < kMostSources)
      sources.push_back(brief_of_row(row, holds));
    else
      known.erase(found);
  }
  return sources;
}

// One that calls a library is no example of a candidate.
std::vector<SourceBrief> baseline_sources(const Problem& problem, const BaselineFacts& baseline) {
  std::vector<SourceBrief> sources;
  const bool links = std::any_of(problem.baselines.begin(), problem.baselines.end(),
                                 [](const BaselineSpec& spec) { return !spec.link.empty(); });
  for (const Row& row : baseline.portfolio.rows)
    if (!links && (sources.empty() || sources.back().source != row.source))
      sources.push_back(brief_of_row(row, "the baseline, " + baseline.name));
  return sources;
}

}  // namespace

Result<void> AttemptMemory::restore(const Archive& archive) {
  ASSIGN_OR_RETURN(const std::vector<Idea> ideas, archive.ideas());
  for (const Idea& idea : ideas) note_idea(idea);
  ASSIGN_OR_RETURN(const std::vector<AttemptRow> rows, archive.attempts());
  for (const AttemptRow& row : rows) {
    if (row.evaluation.stage != Stage::screen) continue;
    std::map<std::string, double> speedup;
    for (const Measurement& measurement : row.evaluation.measurements)
      speedup[measurement.case_name] = measurement.summary.speedup * measurement.reference_speedup;
    note(row.candidate, row.evaluation, speedup);
  }
  return {};
}

void AttemptMemory::note_idea(const Idea& idea) {
  if (idea_texts_.emplace(idea.id, idea.text).second) idea_order_.push_back(idea.id);
}

void AttemptMemory::note(const Candidate& candidate, const Evaluation& evaluation,
                         const std::map<std::string, double>& speedup) {
  if (evaluation.verdict == Verdict::engine_failed || candidate.rows.size() != 1) return;
  const auto idea = idea_texts_.find(candidate.idea_id);
  attempts_.push_back({candidate.id,
                       {.family = candidate.family,
                        .idea = idea == idea_texts_.end() ? std::string() : idea->second,
                        .knobs = describe_knobs(candidate.rows.front().knobs),
                        .verdict = evaluation.verdict,
                        .reason = evaluation.reason,
                        .speedup = speedup}});
}

std::vector<AttemptBrief> AttemptMemory::near_misses(const std::vector<Champion>& champions) const {
  std::set<std::string> crowned;
  for (const Champion& champion : champions) crowned.insert(champion.candidate_id);
  std::vector<std::pair<double, const AttemptBrief*>> near;
  for (const Attempt& attempt : attempts_) {
    if (crowned.contains(attempt.candidate_id)) continue;
    const double share = nearness(attempt.brief, champions);
    if (share >= kNear || is_wrong_by_little(attempt.brief.verdict))
      near.emplace_back(share, &attempt.brief);
  }
  std::stable_sort(near.begin(), near.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<AttemptBrief> briefs;
  std::set<std::string> families;
  for (const auto& [share, brief] : near)
    if (briefs.size() < kMostNearMisses && families.insert(brief->family).second)
      briefs.push_back(*brief);
  return briefs;
}

std::vector<AttemptBrief> AttemptMemory::dead_ends(const std::vector<FamilyState>& families) const {
  std::vector<AttemptBrief> briefs;
  for (const FamilyState& family : families)
    if (family.retired)
      briefs.push_back({.family = family.name,
                        .idea = family.text,
                        .verdict = family.accepted > 0 ? Verdict::accepted : Verdict::wrong_value,
                        .reason = family.retired_why,
                        .speedup = family.best_per_case});
  std::set<std::pair<std::string, Verdict>> seen;
  for (auto attempt = attempts_.rbegin(); attempt != attempts_.rend(); ++attempt) {
    const AttemptBrief& brief = attempt->brief;
    if (brief.verdict == Verdict::accepted || is_wrong_by_little(brief.verdict)) continue;
    if (briefs.size() >= kMostDeadEnds) break;
    if (seen.insert({brief.family, brief.verdict}).second) briefs.push_back(brief);
  }
  return briefs;
}

std::vector<std::string> AttemptMemory::ideas() const {
  std::vector<std::string> texts;
  const std::size_t skipped = idea_order_.size() > kMostIdeas ? idea_order_.size() - kMostIdeas : 0;
  for (std::size_t i = skipped; i < idea_order_.size(); ++i)
    texts.push_back(idea_texts_.at(idea_order_[i]));
  return texts;
}

ProposalContext make_context(const ContextSources& from) {
  const std::vector<Champion> champions = from.search.champions();
  ProposalContext context{.problem = from.problem.name, .target = from.target};
  context.statement = problem_statement(from.problem);
  context.families = from.search.families();
  context.sources = champion_sources(from.search, champions);
  if (context.sources.empty()) context.sources = baseline_sources(from.problem, from.baseline);
  context.near_misses = from.memory.near_misses(champions);
  context.dead_ends = from.memory.dead_ends(context.families);
  context.known_ideas = from.memory.ideas();
  context.steering = from.steering;
  context.profile = profile_sentence(from.baseline, champions);
  context.evaluations = from.evaluations;
  for (const Champion& champion : champions) context.champions_version += champion.version + 1;
  return context;
}

std::string profile_sentence(const BaselineFacts& baseline,
                             const std::vector<Champion>& champions) {
  std::string text;
  for (const auto& [case_name, baseline_ns] : baseline.case_ns) {
    const double best_ns = baseline_ns / speedup_of(champions, case_name);
    text += fmt::format("{}{}: {:.1f} us", text.empty() ? "" : "; ", case_name, best_ns / 1e3);
    const auto ceiling = baseline.ceilings.find(case_name);
    if (ceiling == baseline.ceilings.end() || best_ns <= 0) continue;
    if (const double bytes = ceiling->second.bytes / best_ns; bytes > 0)
      text += baseline.roof.bytes_per_ns > 0
                  ? fmt::format(", {:.1f} of {:.1f} GB/s that this machine streams", bytes,
                                baseline.roof.bytes_per_ns)
                  : fmt::format(", {:.1f} GB/s", bytes);
    if (const double flops = ceiling->second.flops / best_ns; flops > 0)
      text += baseline.roof.flops_per_ns > 0
                  ? fmt::format(", {:.1f} of {:.1f} GFLOP/s", flops, baseline.roof.flops_per_ns)
                  : fmt::format(", {:.1f} GFLOP/s", flops);
    for (const auto& [name, ceiling_ns] : ceiling->second.ns)
      text += fmt::format(", {} would take {:.1f} us", name, ceiling_ns / 1e3);
  }
  return text;
}

}  // namespace kbeam
