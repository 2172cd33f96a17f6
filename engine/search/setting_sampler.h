// Draws allowed settings that were not taken yet: uniform while they are frequent, by enumeration
// when they are rare.
#pragma once

#include <kbeam/random.h>

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "search/knob_space.h"

namespace kbeam {

// The same order on every machine, unlike std::shuffle.
template <typename T>
void shuffle(std::vector<T>& items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

class SettingSampler {
 public:
  SettingSampler(const KnobSpace& space, std::uint64_t seed);

  // Marks what it returns as taken. Nothing when the space is exhausted; in a space so large and so
  // constrained that a bounded enumeration meets no allowed setting, also when it gives up.
  std::optional<Setting> draw();

  // False when it was taken before.
  bool take(const Setting& setting) { return taken_.insert(setting).second; }
  bool taken(const Setting& setting) const { return taken_.contains(setting); }

 private:
  std::optional<Setting> draw_by_rejection();
  std::optional<Setting> draw_from_remainder();
  void enumerate();
  void descend(Setting& setting, std::size_t depth, std::int64_t& work);

  KnobSpace space_;
  Random random_;
  std::set<Setting> taken_;
  std::vector<Setting> remainder_;  // shuffled; may hold settings that were taken meanwhile
  bool remainder_is_all_ = false;
};

}  // namespace kbeam
