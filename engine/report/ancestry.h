// Who came from whom, what each step of the ladder changed, and which kinds of ideas paid: derived
// from a campaign's attempts and ladder.
#pragma once

#include <string>
#include <vector>

#include "report/report.h"

namespace kbeam {

struct AttemptFacts;
struct LadderFacts;

// A source that candidates of one row were made from.
struct SketchFacts {
  std::string name;  // of the file, numbered where two files share it
  std::string family;
};

// Of each attempt: its sketch, the first attempts of the candidates that it came from, and whether
// it is an ancestor of the winner. A portfolio came from the candidates of its rows.
std::vector<SketchFacts> add_ancestry(const ReportInput& input, const std::string& winner_id,
                                      std::vector<AttemptFacts>& attempts);

// What the steps of the ladder that share a name (a category, a proposer) gained together, and what
// they cost. All factors multiply to the gain of the whole ladder.
struct GainFacts {
  std::string name;
  int evaluations = 0;  // attempts of any stage
  int steps = 0;
  double factor = 1;
};
enum class GainOf { category, origin };
std::vector<GainFacts> gather_gains(GainOf what, const std::vector<AttemptFacts>& attempts,
                                    const std::vector<LadderFacts>& ladder);

// What a step of the ladder is to be compared with.
struct StepOrigin {
  const Candidate* candidate = nullptr;  // null: the archive does not know it
  const Candidate* before = nullptr;     // its parent, else the first of its source; null: neither
  bool is_parent = false;
};
StepOrigin find_step_origin(const ReportInput& input, const std::string& candidate_id);

// "kPanel 16 → 32, kPad 0 → 1"; empty when all values are equal.
std::string describe_knob_changes(const KnobValues& before, const KnobValues& after);

}  // namespace kbeam
