// A campaign without compilers or clocks, for tests: families with known landscapes, noisy screens,
// better confirmations. Not part of the engine.
#pragma once

#include <fmt/format.h>
#include <kbeam/random.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/entropy.h"
#include "search/search.h"

namespace kbeam {

// Per case a hill over the knobs: `peak` at `summit`, falling with the squared distance.
struct SimulatedFamily {
  std::string name;
  std::map<std::string, double> peak;              // per case
  std::map<std::string, std::vector<int>> summit;  // per case, one choice a knob
  double steepness = 0.04;
  std::function<Verdict(const std::vector<int>&)> verdict = [](const std::vector<int>&) {
    return Verdict::accepted;
  };
};

inline const std::vector<int>& simulated_knob_sizes() {
  static const std::vector<int> sizes{5, 5, 4, 4, 3};
  return sizes;
}

inline Sketch simulated_sketch(const std::string& family, const std::string& source) {
  Sketch sketch;
  sketch.idea.id = "idea " + family;
  sketch.idea.family = family;
  sketch.idea.text = "about " + family;
  sketch.idea.source = "builtin";
  sketch.source = source;
  sketch.source_name = family + ".cpp";
  int index = 0;
  for (const int size : simulated_knob_sizes()) {
    Knob knob{fmt::format("k{}", index++), "int", "0", {}};
    for (int choice = 0; choice < size; ++choice) knob.choices.push_back(std::to_string(choice));
    sketch.knobs.push_back(knob);
  }
  sketch.constraints.push_back({"(k0 + k1) % 6 != 5", ""});
  return sketch;
}

inline std::vector<int> simulated_choices(const Candidate& candidate) {
  std::vector<int> choices;
  for (const auto& [name, value] : candidate.rows.front().knobs)
    choices.push_back(std::stoi(value));
  return choices;
}

class SimulatedCampaign {
 public:
  SimulatedCampaign(std::vector<std::string> cases, std::vector<SimulatedFamily> families,
                    std::uint64_t seed)
      : cases_(std::move(cases)), families_(std::move(families)), seed_(seed) {}

  std::vector<Sketch> sketches() const {
    std::vector<Sketch> made;
    for (const SimulatedFamily& family : families_)
      made.push_back(simulated_sketch(family.name, "code " + family.name));
    return made;
  }

  SearchConfig config() const {
    SearchConfig config;
    config.seed = seed_;
    config.cases = cases_;
    return config;
  }

  double true_speedup(const Candidate& candidate, const std::string& case_name) const {
    const SimulatedFamily& family = family_of(candidate);
    const std::vector<int> choices = simulated_choices(candidate);
    double distance = 0;
    for (std::size_t i = 0; i < choices.size(); ++i)
      distance += std::pow(choices[i] - family.summit.at(case_name)[i], 2);
    return family.peak.at(case_name) * std::exp(-family.steepness * distance);
  }

  // A screen: the same candidate always shows the same noise.
  Observation screen(const Candidate& candidate) const {
    Observation seen;
    seen.candidate_id = candidate.id;
    seen.verdict = family_of(candidate).verdict(simulated_choices(candidate));
    if (seen.verdict != Verdict::accepted) return seen;
    Random noise(derive_seed(seed_, candidate.id));
    for (const std::string& case_name : cases_)
      seen.speedup[case_name] =
          true_speedup(candidate, case_name) * std::exp(screen_noise * noise.normal());
    return seen;
  }

  double optimum(const std::string& case_name) const {
    double best = 0;
    for (const SimulatedFamily& family : families_)
      best = std::max(best, family.peak.at(case_name));
    return best;
  }

  // Confirms what the search asks for: the true speeds decide, with the margin of a real
  // comparison.
  void answer_challenges(Search& search) {
    for (const Search::Challenge& challenge : search.challenges()) {
      ++confirmations;
      const Candidate candidate = *search.find(challenge.candidate_id);
      const double speedup = true_speedup(candidate, challenge.case_name);
      double to_beat = 0;
      for (const Champion& champion : search.champions())
        if (champion.case_name == challenge.case_name) to_beat = champion.speedup;
      if (speedup > to_beat * 1.005)
        search.crown(
            {challenge.case_name, candidate.id, candidate.family, speedup, speedup, speedup, 0});
      else
        search.refuse(challenge.case_name, candidate.id, "same");
    }
  }

  // One evaluation: false when the search has nothing left.
  bool step(Search& search) {
    const auto proposal = search.ask();
    if (!proposal) return false;
    trace.push_back(*proposal);
    search.tell(screen(proposal->candidate));
    answer_challenges(search);
    return true;
  }

  // The geometric mean over the cases of what the champions reach of the optimum.
  double reached(const Search& search) const {
    double sum = 0;
    std::size_t held = 0;
    for (const Champion& champion : search.champions()) {
      sum += std::log(true_speedup(*search.find(champion.candidate_id), champion.case_name) /
                      optimum(champion.case_name));
      ++held;
    }
    return held == cases_.size() ? std::exp(sum / static_cast<double>(held)) : 0;
  }

  double screen_noise = 0.02;
  int confirmations = 0;
  std::vector<Proposal> trace;

 private:
  const SimulatedFamily& family_of(const Candidate& candidate) const {
    const auto found = std::find_if(
        families_.begin(), families_.end(),
        [&](const SimulatedFamily& family) { return family.name == candidate.family; });
    CHECK(found != families_.end(), "a simulated campaign is asked about its own candidates");
    return *found;
  }

  std::vector<std::string> cases_;
  std::vector<SimulatedFamily> families_;
  std::uint64_t seed_;
};

}  // namespace kbeam
