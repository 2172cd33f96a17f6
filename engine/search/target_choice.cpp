#include "search/target_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"

namespace kbeam {
namespace {

const std::string& family_of(const SketchTuning& sketch) {
  return sketch.sketch().idea.family;
}

double speedup_to_beat(const Standings& standings, const std::string& case_name) {
  const auto standing = standings.find(case_name);
  return standing == standings.end() ? 0 : standing->second.speedup;
}

// What an evaluation aimed at this regime is worth: near to the best, young, or gaining lately.
double expected_gain(const Arm& arm, double to_beat) {
  if (arm.best <= 0 || to_beat <= 0) return 0;
  const double near = std::pow(std::min(arm.best / to_beat, 1.1), 8);
  const double young = 1 + 4.0 / (1 + arm.aimed);
  const double gaining = 0.05 + std::pow(0.5, arm.dry / 6.0);
  return near * young * gaining;
}

std::vector<std::size_t> open_sketches(const BeamSlot& slot, const SearchView& view) {
  std::vector<std::size_t> open;
  for (const BeamFamily& family : view.beam.families()) {
    if (!view.beam.can_ask(family) || (!slot.restart && family.state.role != slot.role)) continue;
    for (std::size_t i = 0; i < view.sketches.size(); ++i) {
      const SketchTuning& sketch = view.sketches[i];
      if (family_of(sketch) != family.state.name) continue;
      if (!(family.never_judged() ? sketch.exhausted() : is_closed(sketch, view.config)))
        open.push_back(i);
    }
  }
  return open;
}

// Of the families that own these sketches, the one that was asked least.
std::vector<std::size_t> keep_least_asked_family(std::vector<std::size_t> sketches,
                                                 const SearchView& view) {
  const auto asked_of = [&](const std::string& family) {
    int asked = 0;
    for (const SketchTuning& sketch : view.sketches)
      if (family_of(sketch) == family) asked += sketch.asked();
    return asked;
  };
  const std::string* least = nullptr;
  for (const std::size_t sketch : sketches) {
    const std::string& family = family_of(view.sketches[sketch]);
    if (!least || asked_of(family) < asked_of(*least)) least = &family;
  }
  std::erase_if(sketches,
                [&](std::size_t sketch) { return family_of(view.sketches[sketch]) != *least; });
  return sketches;
}

// Random settings come first, and go on as long as there is nothing to climb from.
std::optional<std::size_t> find_unready(const std::vector<std::size_t>& sketches,
                                        const SearchView& view) {
  std::optional<std::size_t> least_asked;
  for (const std::size_t i : sketches) {
    const SketchTuning& sketch = view.sketches[i];
    if (sketch.asked() > view.config.random_starts && sketch.accepted() > 0) continue;
    if (!least_asked || sketch.asked() < view.sketches[*least_asked].asked()) least_asked = i;
  }
  return least_asked;
}

Target draw_by_gain(const std::vector<std::size_t>& sketches, const SearchView& view,
                    Random& random) {
  std::vector<std::pair<double, Target>> up_to;
  double total = 0;
  for (const std::size_t sketch : sketches) {
    for (const auto& [case_name, arm] : view.sketches[sketch].arms()) {
      total += expected_gain(arm, speedup_to_beat(view.standings, case_name));
      up_to.push_back({total, {sketch, case_name, {}}});
    }
  }
  const double drawn = random.uniform() * total;
  for (const auto& [bound, target] : up_to)
    if (drawn < bound) return target;
  return {sketches.front(), "", {}};  // accepted, but no regime was timed
}

// Of all sketches whose model has a word, the one that promises most.
std::optional<Target> find_most_promising(const std::vector<std::size_t>& sketches,
                                          const SearchView& view) {
  std::map<std::string, double> to_beat;
  for (const auto& [case_name, standing] : view.standings)
    if (standing.speedup > 0) to_beat[case_name] = standing.speedup;
  std::optional<Target> best;
  for (const std::size_t sketch : sketches) {
    auto promise = view.sketches[sketch].promise(to_beat);
    if (promise && (!best || promise->gain > best->promise->gain))
      best = Target{sketch, promise->case_name, std::move(promise)};
  }
  return best;
}

const FamilyState& state_of(const std::string& family_name, const SearchView& view) {
  const auto found =
      std::find_if(view.beam.families().begin(), view.beam.families().end(),
                   [&](const BeamFamily& family) { return family.state.name == family_name; });
  CHECK(found != view.beam.families().end(), "every sketch belongs to a family of the beam");
  return found->state;
}

}  // namespace

bool is_closed(const SketchTuning& sketch, const SearchConfig& config) {
  return sketch.exhausted() ||
         (sketch.accepted() == 0 && sketch.told() >= config.trials_when_wrong);
}

std::optional<Target> choose_target(const BeamSlot& slot, const SearchView& view, Random& random) {
  std::vector<std::size_t> open = open_sketches(slot, view);
  if (open.empty()) return std::nullopt;
  if (slot.restart) return Target{open[random.below(open.size())], "", {}};
  if (slot.role == Role::structural) open = keep_least_asked_family(std::move(open), view);
  if (const auto unready = find_unready(open, view)) return Target{*unready, "", {}};
  if (view.models_turn)
    if (auto promising = find_most_promising(open, view)) return promising;
  return draw_by_gain(open, view, random);
}

std::string explain(const BeamSlot& slot, const Target& target, const Suggestion& suggestion,
                    const SearchView& view) {
  const SketchTuning& sketch = view.sketches[target.sketch];
  const FamilyState& state = state_of(family_of(sketch), view);
  std::string why = slot.why;
  if (!slot.restart && slot.role == Role::structural)
    why = fmt::format("young family, {} of {} protected trials", state.evaluations,
                      view.config.trials_before_judgement);
  if (!slot.restart && slot.role == Role::near_miss)
    why = state.accepted > 0 ? "near miss" : "wrong by little: another setting may be right";
  if (!target.case_name.empty())
    why += fmt::format("; {} at {:.2f} x against {:.2f} x to beat", target.case_name,
                       sketch.arms().at(target.case_name).best,
                       speedup_to_beat(view.standings, target.case_name));
  if (target.promise)
    why += fmt::format(
        "; the model expects {:.2f} % of the geometric mean",
        100 * std::expm1(target.promise->gain / static_cast<double>(sketch.arms().size())));
  if (!suggestion.parent) return why;
  why += ";";
  for (const auto& [name, value] : suggestion.knobs)
    if (suggestion.parent->at(name) != value)
      why += fmt::format(" {} {} -> {}", name, suggestion.parent->at(name), value);
  return why;
}

}  // namespace kbeam
