#include "search/sketch_tuning.h"

#include <algorithm>
#include <utility>

#include "base/entropy.h"

namespace kbeam {
namespace {

// A smaller rise of a screened best is noise, not progress.
constexpr double kGain = 1.01;

}  // namespace

SketchTuning::SketchTuning(Sketch sketch, const std::vector<std::string>& cases, std::uint64_t seed)
    : sketch_(std::move(sketch)), space_(sketch_.knobs, sketch_.constraints) {
  random_ = make_random_tuner(space_, derive_seed(seed, "random"));
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
  random_->exclude(knobs);
  for (const auto& [case_name, tuner] : tuners_) tuner->exclude(knobs);
}

std::optional<Suggestion> SketchTuning::suggest_default() {
  KnobValues knobs = space_.defaults();
  if (asked_ > 0 || !space_.allows(knobs)) return suggest_random();
  return taken(std::move(knobs), "default", std::nullopt);
}

std::optional<Suggestion> SketchTuning::suggest_random() {
  auto knobs = random_->ask();
  exhausted_ = !knobs;
  if (exhausted_) return std::nullopt;
  return taken(std::move(*knobs), "random", std::nullopt);
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

bool SketchTuning::tell(const Outcome& outcome) {
  if (outcome.first) ++told_;
  const auto known = [&](const auto& arm) { return arm.second.scores.contains(outcome.knobs); };
  const bool was_accepted = std::any_of(arms_.begin(), arms_.end(), known);
  if (outcome.accepted != was_accepted) accepted_ += outcome.accepted ? 1 : -1;
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
  if (arms_.contains(case_name)) tell_arm(case_name, knobs, speedup);
}

}  // namespace kbeam
