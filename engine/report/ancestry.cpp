#include "report/ancestry.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "report/facts.h"

namespace kbeam {
namespace {

const std::string kUnknownName = "unknown";

// A portfolio's row and the plain candidate that it was taken from agree in this.
std::string content_of(const Row& row) {
  return row.source + '\0' + describe_knobs(row.knobs);
}

std::vector<std::string> parents_of(const Candidate& candidate,
                                    const std::map<std::string, std::string>& plain_by_content) {
  if (!candidate.parent.empty()) return {candidate.parent};
  std::vector<std::string> parents;
  if (candidate.rows.size() < 2) return parents;
  for (const Row& row : candidate.rows) {
    const auto found = plain_by_content.find(content_of(row));
    if (found != plain_by_content.end() &&
        std::ranges::find(parents, found->second) == parents.end())
      parents.push_back(found->second);
  }
  return parents;
}

void mark_ancestors(const std::string& winner_id, std::vector<AttemptFacts>& attempts,
                    const std::map<std::string, int>& first_of) {
  const auto winner = first_of.find(winner_id);
  if (winner == first_of.end()) return;
  std::vector<int> waiting{winner->second};
  while (!waiting.empty()) {
    AttemptFacts& attempt = attempts[static_cast<std::size_t>(waiting.back() - 1)];
    waiting.pop_back();
    if (std::exchange(attempt.leads_to_winner, true)) continue;
    waiting.insert(waiting.end(), attempt.parents.begin(), attempt.parents.end());
  }
}

}  // namespace

std::vector<SketchFacts> add_ancestry(const ReportInput& input, const std::string& winner_id,
                                      std::vector<AttemptFacts>& attempts) {
  std::map<std::string, std::string> plain_by_content;
  for (const Candidate& candidate : input.candidates)
    if (candidate.rows.size() == 1)
      plain_by_content.emplace(content_of(candidate.rows.front()), candidate.id);
  std::map<std::string, int> first_of;     // candidate id -> number of its first attempt
  std::map<std::string, int> sketch_of;    // source -> index
  std::map<std::string, int> files_named;  // how many sources share a file name
  std::vector<SketchFacts> sketches;
  for (AttemptFacts& attempt : attempts) {
    attempt.is_first = first_of.emplace(attempt.evaluation->candidate_id, attempt.number).second;
    if (attempt.candidate == nullptr || attempt.candidate->rows.size() != 1) continue;
    const Row& row = attempt.candidate->rows.front();
    const auto [sketch, is_new] = sketch_of.emplace(row.source, static_cast<int>(sketches.size()));
    attempt.sketch = sketch->second;
    if (!is_new) continue;
    const int same_name = ++files_named[row.source_name];
    sketches.push_back(
        {same_name == 1 ? row.source_name : fmt::format("{} ({})", row.source_name, same_name),
         attempt.family()});
  }
  for (AttemptFacts& attempt : attempts) {
    if (attempt.candidate == nullptr || !attempt.is_first) continue;
    for (const std::string& parent : parents_of(*attempt.candidate, plain_by_content)) {
      const auto found = first_of.find(parent);
      // What was taken up again after it had been submitted may come before its parent.
      if (found != first_of.end() && found->second != attempt.number)
        attempt.parents.push_back(found->second);
    }
  }
  mark_ancestors(winner_id, attempts, first_of);
  return sketches;
}

std::vector<GainFacts> gather_gains(GainOf what, const std::vector<AttemptFacts>& attempts,
                                    const std::vector<LadderFacts>& ladder) {
  std::map<std::string, GainFacts> gains;
  std::map<std::string, std::string> name_of;  // by candidate id
  for (const AttemptFacts& attempt : attempts) {
    // A portfolio is put together from what others found: it gains nothing by itself.
    if (attempt.candidate == nullptr || attempt.candidate->rows.size() != 1) continue;
    std::string name = attempt.candidate->origin;
    if (what == GainOf::category)
      name = attempt.idea == nullptr ? std::string() : attempt.idea->category;
    if (name.empty()) name = kUnknownName;
    name_of[attempt.evaluation->candidate_id] = name;
    ++gains[name].evaluations;
  }
  double before = 1;
  for (const LadderFacts& rung : ladder) {
    const auto known = name_of.find(rung.step->champion.candidate_id);
    GainFacts& gain = gains[known == name_of.end() ? kUnknownName : known->second];
    ++gain.steps;
    gain.factor *= rung.geomean / std::exchange(before, rung.geomean);
  }
  std::vector<GainFacts> sorted;
  for (auto& [name, gain] : gains) {
    gain.name = name;
    sorted.push_back(gain);
  }
  std::ranges::stable_sort(sorted, std::greater<>(), &GainFacts::factor);
  return sorted;
}

StepOrigin find_step_origin(const ReportInput& input, const std::string& candidate_id) {
  StepOrigin origin;
  const auto find = [&](const std::string& id) -> const Candidate* {
    const auto found = std::ranges::find(input.candidates, id, &Candidate::id);
    return id.empty() || found == input.candidates.end() ? nullptr : &*found;
  };
  origin.candidate = find(candidate_id);
  if (origin.candidate == nullptr || origin.candidate->rows.empty()) return origin;
  origin.before = find(origin.candidate->parent);
  origin.is_parent = origin.before != nullptr && !origin.before->rows.empty();
  if (origin.is_parent) return origin;
  origin.before = nullptr;
  for (const Candidate& candidate : input.candidates) {
    if (&candidate == origin.candidate) return origin;  // it is the first of its source
    if (candidate.rows.size() != 1 ||
        candidate.rows.front().source != origin.candidate->rows.front().source)
      continue;
    origin.before = &candidate;
    return origin;
  }
  return origin;
}

std::string describe_knob_changes(const KnobValues& before, const KnobValues& after) {
  std::string text;
  std::set<std::string> names;
  for (const auto& [name, value] : before) names.insert(name);
  for (const auto& [name, value] : after) names.insert(name);
  const auto value_in = [](const KnobValues& knobs, const std::string& name) {
    const auto found = knobs.find(name);
    return found == knobs.end() ? std::string("default") : found->second;
  };
  for (const std::string& name : names) {
    const std::string from = value_in(before, name), to = value_in(after, name);
    if (from != to) text += fmt::format("{}{} {} → {}", text.empty() ? "" : ", ", name, from, to);
  }
  return text;
}

}  // namespace kbeam
