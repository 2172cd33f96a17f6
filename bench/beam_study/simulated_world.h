// Made-up landscapes: hills over five knobs a sketch and case, from a proposer of stated quality.
#pragma once

#include "bench/beam_study/world.h"

namespace kbeam {

// Speeds are in natural logarithms, so that 0.1 is about 10 %.
struct Recipe {
  int opening = 6;      // sketches there from the start
  int later = 0;        // sketches that arrive afterwards
  int every = 0;        // evaluations between two arrivals
  double right = 1;     // chance that a sketch's code is right at all
  double good = 0;      // chance that a sketch's summit is `lift` higher
  double lift = 0.9;    //
  double spread = 0.3;  // of the summits of sketches
  double split = 0.15;  // of the summits of one sketch between cases
  double rise = 0;      // how much higher each later sketch is than the one before
  double hidden = 0;    // 1: the better a sketch's summit, the further its default lies from it
  double slope = 1.2;   // fall from the summit to the far end of all knobs
  double rugged = 0;    // height of what pairs of knobs add
  double fragile = 0;   // share of the settings of the best third that give wrong values
};

World make_simulated_world(const Recipe& recipe, std::uint64_t seed);

}  // namespace kbeam
