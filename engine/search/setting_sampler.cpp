#include "search/setting_sampler.h"

#include <numeric>
#include <utility>

namespace kbeam {
namespace {

constexpr int kRejections = 64;
// Bounds one enumeration to a few tens of milliseconds and megabytes.
constexpr std::int64_t kMostAssignments = 200'000;
constexpr std::size_t kMostRemembered = 20'000;

}  // namespace

SettingSampler::SettingSampler(const KnobSpace& space, std::uint64_t seed)
    : space_(space), random_(seed) {}

std::optional<Setting> SettingSampler::draw() {
  std::optional<Setting> setting;
  if (!remainder_is_all_) setting = draw_by_rejection();
  if (!setting) setting = draw_from_remainder();
  if (setting) take(*setting);
  return setting;
}

std::optional<Setting> SettingSampler::draw_by_rejection() {
  for (int attempt = 0; attempt < kRejections; ++attempt) {
    Setting setting;
    for (const Knob& knob : space_.knobs())
      setting.push_back(static_cast<int>(random_.below(knob.choices.size())));
    if (!taken(setting) && space_.allows(setting)) return setting;
  }
  return std::nullopt;
}

std::optional<Setting> SettingSampler::draw_from_remainder() {
  for (;;) {
    while (!remainder_.empty()) {
      Setting setting = std::move(remainder_.back());
      remainder_.pop_back();
      if (!taken(setting)) return setting;
    }
    if (remainder_is_all_) return std::nullopt;
    enumerate();
    if (remainder_.empty()) return std::nullopt;
  }
}

void SettingSampler::enumerate() {
  std::int64_t work = kMostAssignments;
  Setting setting(space_.knobs().size(), 0);
  descend(setting, 0, work);
  remainder_is_all_ = work > 0 && remainder_.size() < kMostRemembered;
  shuffle(remainder_, random_);
}

// Depth first, choices in random order, so that an enumeration that ends early is no fixed corner
// of the space.
void SettingSampler::descend(Setting& setting, std::size_t depth, std::int64_t& work) {
  if (depth == setting.size()) {
    if (!taken(setting)) remainder_.push_back(setting);
    return;
  }
  std::vector<int> order(space_.knobs()[depth].choices.size());
  std::iota(order.begin(), order.end(), 0);
  shuffle(order, random_);
  for (const int choice : order) {
    if (--work <= 0 || remainder_.size() >= kMostRemembered) return;
    setting[depth] = choice;
    if (space_.allows_so_far(setting, static_cast<int>(depth))) descend(setting, depth + 1, work);
  }
}

}  // namespace kbeam
