#include "search/sketch_tuning.h"

#include <algorithm>
#include <utility>

#include "base/entropy.h"

namespace kbeam {
namespace {

// A smaller rise of a screened best is noise, not progress.
constexpr double kGain = 1.01;
constexpr std::size_t kFirstSettings = 5;  // that worked, before the model has a word

}  // namespace

std::optional<KnobValues> best_setting(const Arm& arm) {
  const auto best =
      std::max_element(arm.scores.begin(), arm.scores.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (best == arm.scores.end()) return std::nullopt;
  return best->first;
}

SketchTuning::SketchTuning(Sketch sketch, const std::vector<std::string>& cases, std::uint64_t seed)
    : sketch_(std::move(sketch)),
      space_(sketch_.knobs, sketch_.constraints),
      sampler_(space_, derive_seed(seed, "random")),
      model_(space_, cases.size(), derive_seed(seed, "model")) {
  for (const std::string& case_name : cases) {
    tuners_[case_name] = make_local_search_tuner(space_, derive_seed(seed, "local " + case_name));
    arms_[case_name] = {};
  }
}

Suggestion SketchTuning::taken(KnobValues knobs, std::string strategy,
                               std::optional<KnobValues> parent) {
  note_asked(knobs);
  return {std::move(knobs), std::move(strategy), std::move(parent)};
}

void SketchTuning::note_asked(const KnobValues& knobs) {
  ++asked_;
  if (const auto setting = space_.find_setting(knobs)) sampler_.take(*setting);
  for (const auto& [case_name, tuner] : tuners_) tuner->exclude(knobs);
}

std::optional<Suggestion> SketchTuning::suggest_default() {
  KnobValues knobs = space_.defaults();
  if (asked_ > 0 || !space_.allows(knobs)) return suggest_random();
  return taken(std::move(knobs), "default", std::nullopt);
}

std::optional<Suggestion> SketchTuning::suggest_random() {
  const auto setting = sampler_.draw();
  exhausted_ = !setting;
  if (exhausted_) return std::nullopt;
  return taken(space_.values_of(*setting), "random", std::nullopt);
}

std::optional<Promise> SketchTuning::promise(const std::map<std::string, double>& to_beat) {
  if (exhausted_ || model_.worked() < kFirstSettings) return std::nullopt;
  std::vector<std::string> cases;
  SettingModel::Scores bar;
  for (const auto& [case_name, arm] : arms_) {
    cases.push_back(case_name);
    const auto found = to_beat.find(case_name);
    bar.push_back(found == to_beat.end() ? std::nullopt : std::optional<double>(found->second));
  }
  const auto found = model_.most_promising(bar, sampler_);
  if (!found) return std::nullopt;
  return Promise{space_.values_of(found->setting), found->gain, cases[found->best_output]};
}

Suggestion SketchTuning::suggest_promised(const Promise& promise) {
  ++arms_.at(promise.case_name).aimed;
  KnobValues parent = space_.values_of(model_.nearest_told(*space_.find_setting(promise.knobs)));
  return taken(promise.knobs, "model", std::move(parent));
}

std::optional<Suggestion> SketchTuning::suggest_for(const std::string& case_name) {
  Tuner& tuner = *tuners_.at(case_name);
  auto knobs = tuner.ask();
  exhausted_ = !knobs;
  if (exhausted_) return std::nullopt;
  ++arms_.at(case_name).aimed;
  auto parent = tuner.parent();
  std::string strategy = parent ? tuner.name() : "random";
  return taken(std::move(*knobs), std::move(strategy), std::move(parent));
}

std::optional<Suggestion> SketchTuning::suggest_borrowed(const std::string& case_name,
                                                         const KnobValues& theirs) {
  Arm& arm = arms_.at(case_name);
  const std::optional<KnobValues> own = best_setting(arm);
  if (!own || exhausted_) return std::nullopt;
  KnobValues knobs = *own;
  for (const Knob& knob : space_.knobs()) {
    const auto lent = theirs.find(knob.name);
    if (lent != theirs.end() &&
        std::find(knob.choices.begin(), knob.choices.end(), lent->second) != knob.choices.end())
      knobs[knob.name] = lent->second;
  }
  const auto setting = space_.find_setting(knobs);
  if (!setting || !space_.allows(*setting) || sampler_.taken(*setting)) return std::nullopt;
  ++arm.aimed;
  return taken(std::move(knobs), "borrowed", own);
}

bool SketchTuning::tell(const Outcome& outcome) {
  if (outcome.first) ++told_;
  const auto known = [&](const auto& arm) { return arm.second.scores.contains(outcome.knobs); };
  const bool was_accepted = std::any_of(arms_.begin(), arms_.end(), known);
  if (outcome.accepted != was_accepted) accepted_ += outcome.accepted ? 1 : -1;
  tell_model(outcome.knobs, outcome.accepted, outcome.speedup);
  bool gained = false;
  for (auto& [case_name, arm] : arms_) {
    const auto found = outcome.speedup.find(case_name);
    const bool seen = outcome.accepted && found != outcome.speedup.end();
    const bool rose = tell_arm(case_name, outcome.knobs,
                               seen ? std::optional<double>(found->second) : std::nullopt);
    if (rose) arm.dry = 0;
    if (!rose && outcome.first && outcome.aim == case_name) ++arm.dry;
    gained = gained || rose;
  }
  return gained;
}

void SketchTuning::tell_model(const KnobValues& knobs, bool accepted,
                              const std::map<std::string, double>& speedup) {
  const auto setting = space_.find_setting(knobs);
  if (!setting) return;
  SettingModel::Scores scores;
  for (const auto& [case_name, arm] : arms_) {
    const auto found = speedup.find(case_name);
    const bool seen = accepted && found != speedup.end();
    scores.push_back(seen ? std::optional<double>(found->second) : std::nullopt);
  }
  model_.tell(*setting, std::move(scores));
}

bool SketchTuning::tell_arm(const std::string& case_name, const KnobValues& knobs,
                            std::optional<double> score) {
  tuners_.at(case_name)->tell(knobs, score);
  Arm& arm = arms_.at(case_name);
  if (score)
    arm.scores[knobs] = *score;
  else
    arm.scores.erase(knobs);
  const double before = arm.best;
  arm.best = 0;
  for (const auto& [setting, value] : arm.scores) arm.best = std::max(arm.best, value);
  return arm.best > before * kGain;
}

void SketchTuning::correct(const KnobValues& knobs, const std::string& case_name, double speedup) {
  if (!arms_.contains(case_name)) return;
  tell_arm(case_name, knobs, speedup);
  std::map<std::string, double> known;
  for (const auto& [name, arm] : arms_)
    if (const auto found = arm.scores.find(knobs); found != arm.scores.end())
      known.insert({name, found->second});
  tell_model(knobs, true, known);
}

}  // namespace kbeam
