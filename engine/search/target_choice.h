// Which sketch, and which regime of it, a slot of the beam goes to: by expected gain, random
// settings first. Looks at what is known; changes nothing but the random stream.
#pragma once

#include <kbeam/random.h>

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "search/beam.h"
#include "search/search.h"
#include "search/sketch_tuning.h"

namespace kbeam {

// A sketch by its position and the regime to tune it for; no regime: a random setting.
struct Target {
  std::size_t sketch = 0;
  std::string case_name;
};

struct SearchView {
  const SearchConfig& config;
  const Beam& beam;
  const std::deque<SketchTuning>& sketches;
  const Standings& standings;
};

// Nothing to expect from it: no settings left, or none of the first ones worked.
bool is_closed(const SketchTuning& sketch, const SearchConfig& config);

std::optional<Target> choose_target(const Slot& slot, const SearchView& view, Random& random);

// One line for the decision log.
std::string explain(const Slot& slot, const Target& target, const Suggestion& suggestion,
                    const SearchView& view);

}  // namespace kbeam
