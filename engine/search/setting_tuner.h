// What every tuner does alike: it thinks in settings and is spoken to in knob values, asks for the
// default first and never for a setting twice. How the next one is chosen is each tuner's own.
#pragma once

#include <optional>

#include "search/setting_sampler.h"
#include "search/tuner.h"

namespace kbeam {

class SettingTuner : public Tuner {
 public:
  std::optional<KnobValues> ask() final {
    parent_.reset();
    std::optional<Setting> setting = untried_default();
    if (!setting) setting = choose();
    if (!setting) return std::nullopt;
    return space_.values_of(*setting);
  }

  void tell(const KnobValues& values, std::optional<double> score) final {
    const auto setting = space_.find_setting(values);
    if (!setting) return;
    sampler_.take(*setting);
    learn(*setting, score);
  }

  void exclude(const KnobValues& values) final {
    if (const auto setting = space_.find_setting(values)) sampler_.take(*setting);
  }

  std::optional<KnobValues> parent() const final {
    if (!parent_) return std::nullopt;
    return space_.values_of(*parent_);
  }

 protected:
  SettingTuner(const KnobSpace& space, std::uint64_t seed) : space_(space), sampler_(space, seed) {}

  // A setting that sampler_ has given or taken; parent_ says what it was derived from.
  virtual std::optional<Setting> choose() = 0;
  virtual void learn(const Setting& setting, std::optional<double> score) = 0;

  KnobSpace space_;
  SettingSampler sampler_;
  std::optional<Setting> parent_;

 private:
  std::optional<Setting> untried_default() {
    const auto setting = space_.find_setting(space_.defaults());
    if (setting && space_.allows(*setting) && sampler_.take(*setting)) return setting;
    return std::nullopt;
  }
};

}  // namespace kbeam
