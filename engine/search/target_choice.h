// Which sketch, and which setting or regime of it, a slot of the beam goes to: by expected gain,
// random settings first. Looks at what is known; changes nothing but the random stream.
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

// A sketch by its position, and what to ask it for: what its model promises, else a step of the
// local search for a regime, else a random setting.
struct Target {
  std::size_t sketch = 0;
  std::string case_name;
  std::optional<Promise> promise;
};

struct SearchView {
  const SearchConfig& config;
  const Beam& beam;
  std::deque<SketchTuning>& sketches;  // models catch up with what they were told
  const Standings& standings;
  bool models_turn = false;  // local searches and models take turns
};

// Nothing to expect from it: no settings left, or none of the first ones worked.
bool is_closed(const SketchTuning& sketch, const SearchConfig& config);

std::optional<Target> choose_target(const BeamSlot& slot, const SearchView& view, Random& random);

// One line for the decision log.
std::string explain(const BeamSlot& slot, const Target& target, const Suggestion& suggestion,
                    const SearchView& view);

}  // namespace kbeam
