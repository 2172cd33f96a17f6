#include "search/tuner.h"

#include <kbeam/random.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "search/setting_tuner.h"

namespace kbeam {
namespace {

class RandomTuner final : public Tuner {
 public:
  RandomTuner(const KnobSpace& space, std::uint64_t seed) : space_(space), sampler_(space, seed) {}

  std::string name() const override { return "random"; }

  std::optional<KnobValues> ask() override {
    const auto setting = sampler_.draw();
    if (!setting) return std::nullopt;
    return space_.values_of(*setting);
  }

  void tell(const KnobValues& values, std::optional<double>) override { exclude(values); }

  void exclude(const KnobValues& values) override {
    if (const auto setting = space_.find_setting(values)) sampler_.take(*setting);
  }

  std::optional<KnobValues> parent() const override { return std::nullopt; }

 private:
  KnobSpace space_;
  SettingSampler sampler_;
};

class LocalSearchTuner final : public SettingTuner {
 public:
  LocalSearchTuner(const KnobSpace& space, std::uint64_t seed)
      : SettingTuner(space, seed), random_(seed, 1) {}

  std::string name() const override { return "local_search"; }

 private:
  // Scores known before the climb starts: a default may lie in a poor corner.
  static constexpr std::size_t kRandomStarts = 3;
  static constexpr int kKickAttempts = 32;
  static constexpr int kWeakestKick = 2;  // knobs changed

  void learn(const Setting& setting, std::optional<double> score) override {
    const std::optional<Setting> best_before = best_;
    if (score)
      scores_[setting] = *score;
    else
      scores_.erase(setting);
    find_best();
    move_centre(setting, best_before);
  }

  std::optional<Setting> choose() override {
    if (scores_.size() < kRandomStarts) return sampler_.draw();
    if (const auto neighbour = next_neighbour()) return neighbour;
    if (centre_ != best_) {
      climb_from(*best_);
      if (const auto neighbour = next_neighbour()) return neighbour;
    }
    return kick();
  }

  std::optional<Setting> next_neighbour() {
    while (!queue_.empty()) {
      Setting setting = std::move(queue_.back());
      queue_.pop_back();
      if (!sampler_.take(setting)) continue;
      parent_ = centre_;
      return setting;
    }
    return std::nullopt;
  }

  std::optional<Setting> kick() {
    const int knobs = static_cast<int>(best_->size());
    for (int attempt = 0; attempt < kKickAttempts && knobs > 0; ++attempt) {
      Setting setting = *best_;
      for (int change = std::min(kick_strength_, knobs); change > 0; --change) {
        const std::size_t knob = random_.below(setting.size());
        setting[knob] = static_cast<int>(random_.below(space_.knobs()[knob].choices.size()));
      }
      if (!space_.allows(setting) || !sampler_.take(setting)) continue;
      kicked_ = setting;
      parent_ = best_;
      ++kick_strength_;
      return setting;
    }
    kicked_ = sampler_.draw();
    return kicked_;
  }

  void find_best() {
    best_.reset();
    for (const auto& [setting, score] : scores_)
      if (!best_ || score > scores_.at(*best_)) best_ = setting;
  }

  void move_centre(const Setting& told, const std::optional<Setting>& best_before) {
    const bool kick_landed = kicked_ == told;
    if (kick_landed) kicked_.reset();
    if (best_ != best_before) {
      if (best_ == told) kick_strength_ = kWeakestKick;
      if (best_) return climb_from(*best_);
      centre_.reset();
      queue_.clear();
      return;
    }
    const auto score = scores_.find(told);
    if (score == scores_.end()) return;
    // After a kick the climb starts lower than the best on purpose.
    const auto centre = centre_ ? scores_.find(*centre_) : scores_.end();
    if (kick_landed || (centre != scores_.end() && score->second > centre->second))
      climb_from(told);
  }

  void climb_from(const Setting& setting) {
    centre_ = setting;
    queue_.clear();
    for (int distance = space_.longest_knob() - 1; distance > 0; --distance) {
      std::vector<Setting> ring = space_.neighbours_at(setting, distance);
      shuffle(ring, random_);
      std::move(ring.begin(), ring.end(), std::back_inserter(queue_));
    }
  }

  Random random_;
  std::map<Setting, double> scores_;
  std::optional<Setting> best_;
  std::optional<Setting> centre_;  // what is climbed from: the best, or a kicked setting
  std::vector<Setting> queue_;     // neighbours of the centre, next at the back
  std::optional<Setting> kicked_;  // asked by a kick and not told yet
  int kick_strength_ = kWeakestKick;
};

}  // namespace

std::unique_ptr<Tuner> make_random_tuner(const KnobSpace& space, std::uint64_t seed) {
  return std::make_unique<RandomTuner>(space, seed);
}

std::unique_ptr<Tuner> make_local_search_tuner(const KnobSpace& space, std::uint64_t seed) {
  return std::make_unique<LocalSearchTuner>(space, seed);
}

std::span<const TunerStrategy> tuner_strategies() {
  static constexpr std::array strategies{
      TunerStrategy{"auto", "the local search and the model by turns", &make_auto_tuner},
      TunerStrategy{"model", "what a Gaussian process over all that was seen expects most of",
                    &make_model_tuner},
      TunerStrategy{"local_search", "the neighbours of the best, and kicks out of a local optimum",
                    &make_local_search_tuner},
      TunerStrategy{"evolutionary", "children of two of the best, a few knobs changed",
                    &make_evolutionary_tuner},
      TunerStrategy{"random", "any setting that was not tried", &make_random_tuner}};
  return strategies;
}

}  // namespace kbeam
