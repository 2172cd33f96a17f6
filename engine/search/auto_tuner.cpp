// The default: asks the local search and the model by turns, and tells both everything. Each finds
// early what the other finds late: the climb needs no data, the model sees across valleys.
#include <array>
#include <utility>

#include "search/tuner.h"

namespace kbeam {
namespace {

class AutoTuner final : public Tuner {
 public:
  AutoTuner(const KnobSpace& space, std::uint64_t seed)
      : tuners_{make_local_search_tuner(space, seed), make_model_tuner(space, seed)} {}

  std::string name() const override { return "auto"; }

  std::optional<KnobValues> ask() override {
    turn_ = told_ < 12 ? 0 : 1 - turn_;
    auto knobs = tuners_[turn_]->ask();
    if (knobs) tuners_[1 - turn_]->exclude(*knobs);
    return knobs;
  }

  void tell(const KnobValues& values, std::optional<double> score) override {
    ++told_;
    for (const auto& tuner : tuners_) tuner->tell(values, score);
  }

  void exclude(const KnobValues& values) override {
    for (const auto& tuner : tuners_) tuner->exclude(values);
  }

  std::optional<KnobValues> parent() const override { return tuners_[turn_]->parent(); }

 private:
  std::array<std::unique_ptr<Tuner>, 2> tuners_;
  std::size_t turn_ = 0;
  int told_ = 0;
};

}  // namespace

std::unique_ptr<Tuner> make_auto_tuner(const KnobSpace& space, std::uint64_t seed) {
  return std::make_unique<AutoTuner>(space, seed);
}

}  // namespace kbeam
