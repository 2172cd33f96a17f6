// Reads KBEAM_KNOB and KBEAM_REQUIRE from source text, and reduces sources to what matters for
// equality. A tokeniser, not a C++ parser: comments, strings and raw strings are understood, macros
// are not expanded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/candidate.h"

namespace kbeam {

struct SourceKnobs {
  std::vector<Knob> knobs;
  std::vector<KnobConstraint> constraints;
  std::vector<std::string>
      mistakes;  // "line 12: the default 48 of kPanel is not among its choices 16, 32, 64"
};
SourceKnobs scan_knobs(std::string_view source);

// Comments and layout dropped: equal texts mean equal candidates.
std::string normalised_source(std::string_view source);

}  // namespace kbeam
