// The evolutionary tuner: children of two good settings, a few knobs of them changed. Steady state:
// every told setting may become a parent at once, and what failed never does.
#include <kbeam/random.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "search/setting_tuner.h"

namespace kbeam {
namespace {

class EvolutionaryTuner final : public SettingTuner {
 public:
  EvolutionaryTuner(const KnobSpace& space, std::uint64_t seed)
      : SettingTuner(space, seed), random_(seed, 2) {}

  std::string name() const override { return "evolutionary"; }

 private:
  static constexpr std::size_t kFirstGeneration = 10;
  static constexpr std::size_t kParents = 12;
  static constexpr int kAttempts = 40;
  static constexpr double kStepShare = 0.6;  // of changes that go to a neighbouring choice

  void learn(const Setting& setting, std::optional<double> score) override {
    std::erase_if(ranked_, [&](const auto& one) { return one.second == setting; });
    if (!score) return;
    // Best first; of equals the earlier.
    const auto place = std::find_if(ranked_.begin(), ranked_.end(),
                                    [&](const auto& one) { return one.first < *score; });
    ranked_.insert(place, {*score, setting});
  }

  std::optional<Setting> choose() override {
    if (ranked_.size() < kFirstGeneration) return sampler_.draw();
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      const Setting& one = draw_parent();
      Setting child = cross(one, draw_parent());
      // A child that was there already is changed more and more.
      mutate(child, 1 + attempt / 8);
      if (!space_.allows(child) || !sampler_.take(child)) continue;
      parent_ = one;
      return child;
    }
    return sampler_.draw();
  }

  // The better of two of the best.
  const Setting& draw_parent() {
    const std::size_t most = std::min(kParents, ranked_.size());
    return ranked_[std::min(random_.below(most), random_.below(most))].second;
  }

  Setting cross(const Setting& a, const Setting& b) {
    Setting child = a;
    for (std::size_t knob = 0; knob < child.size(); ++knob)
      if (random_.below(2) == 0) child[knob] = b[knob];
    return child;
  }

  void mutate(Setting& setting, int changes) {
    const auto knobs = setting.size();
    for (std::size_t knob = 0; knob < knobs; ++knob) {
      if (random_.uniform() * static_cast<double>(knobs) >= changes) continue;
      const auto choices = static_cast<int>(space_.knobs()[knob].choices.size());
      if (random_.uniform() < kStepShare)
        setting[knob] =
            std::clamp(setting[knob] + (random_.below(2) == 0 ? -1 : 1), 0, choices - 1);
      else
        setting[knob] = static_cast<int>(random_.below(static_cast<std::uint64_t>(choices)));
    }
  }

  Random random_;
  std::vector<std::pair<double, Setting>> ranked_;
};

}  // namespace

std::unique_ptr<Tuner> make_evolutionary_tuner(const KnobSpace& space, std::uint64_t seed) {
  return std::make_unique<EvolutionaryTuner>(space, seed);
}

}  // namespace kbeam
