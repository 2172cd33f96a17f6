// The model-based tuner: a Gaussian process over what was told says of every setting in a pool how
// much better than the best it is likely to be; the most promising one is asked next.
#include <utility>

#include "search/setting_model.h"
#include "search/setting_tuner.h"

namespace kbeam {
namespace {

class ModelTuner final : public SettingTuner {
 public:
  ModelTuner(const KnobSpace& space, std::uint64_t seed)
      : SettingTuner(space, seed), model_(space, 1, seed + 1) {}

  std::string name() const override { return "model"; }

 private:
  static constexpr std::size_t kFirstSettings = 8;  // that worked, before the model is asked

  void learn(const Setting& setting, std::optional<double> score) override {
    model_.tell(setting, {score});
  }

  std::optional<Setting> choose() override {
    if (model_.worked() < kFirstSettings) return sampler_.draw();
    auto promise = model_.most_promising({std::nullopt}, sampler_);
    if (!promise) return sampler_.draw();
    sampler_.take(promise->setting);
    parent_ = model_.nearest_told(promise->setting);
    return std::move(promise->setting);
  }

  SettingModel model_;
};

}  // namespace

std::unique_ptr<Tuner> make_model_tuner(const KnobSpace& space, std::uint64_t seed) {
  return std::make_unique<ModelTuner>(space, seed);
}

}  // namespace kbeam
