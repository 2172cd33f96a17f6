#include "bench/beam_study/recorded_world.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/check.h"
#include "base/files.h"
#include "model/json_forms.h"

namespace kbeam {
namespace {

int difference(const KnobValues& a, const KnobValues& b) {
  return static_cast<int>(
      std::ranges::count_if(a, [&](const auto& knob) { return b.at(knob.first) != knob.second; }));
}

Knob& knob_named(Sketch& sketch, const std::string& name, const std::string& fallback) {
  const auto found = std::ranges::find(sketch.knobs, name, &Knob::name);
  if (found != sketch.knobs.end()) return *found;
  return sketch.knobs.emplace_back(Knob{name, "int", fallback, {}});
}

std::vector<Arrival> make_sketches(const RecordedCampaign& campaign) {
  std::vector<Arrival> arrivals;
  for (const RecordedAttempt& attempt : campaign.attempts) {
    auto found = std::ranges::find_if(arrivals, [&](const Arrival& arrival) {
      return arrival.sketch.idea.family == attempt.family;
    });
    if (found == arrivals.end()) {
      Arrival& made = arrivals.emplace_back();
      made.sketch.idea = {.id = "idea " + attempt.family, .family = attempt.family};
      made.sketch.idea.source = "recorded";
      made.sketch.source = campaign.name + " " + attempt.family;
      made.sketch.source_name = attempt.family;
      found = arrivals.end() - 1;
    }
    for (const auto& [name, value] : attempt.knobs) {
      std::vector<std::string>& choices = knob_named(found->sketch, name, value).choices;
      if (std::ranges::find(choices, value) == choices.end()) choices.push_back(value);
    }
  }
  return arrivals;
}

// Inverse squares of the number of knobs that differ weigh the recorded attempts of the family.
Truth estimate(const RecordedCampaign& campaign, const Candidate& candidate) {
  const KnobValues& knobs = candidate.rows.front().knobs;
  std::map<std::string, std::pair<double, double>> sums;  // weight, weight x ln speed-up
  const RecordedAttempt* nearest = nullptr;
  for (const RecordedAttempt& attempt : campaign.attempts) {
    if (attempt.family != candidate.family) continue;
    const int away = difference(attempt.knobs, knobs);
    if (away == 0) return {attempt.verdict, attempt.speedup};
    if (nearest == nullptr || away < difference(nearest->knobs, knobs)) nearest = &attempt;
    for (const auto& [name, speedup] : attempt.speedup) {
      auto& [weight, sum] = sums[name];
      weight += std::pow(away, -2);
      sum += std::pow(away, -2) * std::log(speedup);
    }
  }
  CHECK(nearest != nullptr, "a recorded world is asked about its own families");
  Truth truth{nearest->verdict, {}};
  if (truth.verdict != Verdict::accepted) return truth;
  for (const auto& [name, sum] : sums) truth.speedup[name] = std::exp(sum.second / sum.first);
  return truth;
}

Result<RecordedAttempt> read_attempt(const Json& line) {
  RecordedAttempt attempt;
  attempt.family = line.at("family").get<std::string>();
  line.at("knobs").get_to(attempt.knobs);
  line.at("speedup").get_to(attempt.speedup);
  const auto verdict = parse_verdict(line.at("verdict").get<std::string>());
  if (!verdict)
    return Error{ErrorCode::bad_input, "read a recorded attempt", "unknown verdict",
                 "write it again"};
  attempt.verdict = *verdict;
  return attempt;
}

}  // namespace

Result<RecordedCampaign> load_recorded_campaign(const std::filesystem::path& file) {
  ASSIGN_OR_RETURN(const std::string text, read_file(file));
  RecordedCampaign campaign{file.stem().string(), {}};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::string what =
        "line " + std::to_string(campaign.attempts.size() + 1) + " of " + file.string();
    ASSIGN_OR_RETURN(const Json json, parse_json(line, what));
    try {
      ASSIGN_OR_RETURN(RecordedAttempt attempt, read_attempt(json));
      campaign.attempts.push_back(std::move(attempt));
    } catch (const Json::exception& trouble) {
      return Error{ErrorCode::bad_input, "read " + what, trouble.what(), "write it again"};
    }
  }
  return campaign;
}

World make_recorded_world(std::shared_ptr<const RecordedCampaign> campaign) {
  World world;
  std::set<std::string> cases;
  for (const RecordedAttempt& attempt : campaign->attempts)
    for (const auto& [name, speedup] : attempt.speedup) {
      cases.insert(name);
      world.optimum[name] = std::max(world.optimum[name], speedup);
    }
  world.cases.assign(cases.begin(), cases.end());
  world.arrivals = make_sketches(*campaign);
  world.truth = [campaign](const Candidate& candidate) { return estimate(*campaign, candidate); };
  return world;
}

}  // namespace kbeam
