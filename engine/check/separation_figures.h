// From figures that checks reported to separation rows: which cheats a check claims to catch, the
// worst honest figure, the cheapest cheat. Runs nothing.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/evaluation.h"
#include "model/problem.h"
#include "model/separation.h"

namespace kbeam {

// "A check catches this candidate by its figure", from the line
//   // caught by: CHECK, CHECK on FAMILY, FAMILY; CHECK except FAMILY; CHECK
// among the first of a known_wrong file: on these families, on all but these, or on all.
struct CheatClaim {
  std::string check;
  std::vector<std::string> families;
  bool except = false;  // all but these

  bool covers(const std::string& family) const;
};

struct KnownCandidate {
  std::string name;  // "known_wrong/bf16_inputs"
  bool honest = false;
  std::vector<CheatClaim> claims;  // of a cheat
};

Result<std::vector<CheatClaim>> read_claims(const std::string& source, const std::string& name);

// What one check said of one output of one candidate.
struct Sighting {
  const KnownCandidate* candidate = nullptr;
  std::string case_name;
  std::string family;
  CheckFigure figure;
};

// One row for each check and case that an honest candidate was seen on, cases in the order of
// `cases`. A cheat counts in a row when it claims the check there and is worse than every honest
// candidate: where it does no harm, it is none.
std::vector<SeparationRow> separate(const std::vector<Sighting>& sightings,
                                    const std::vector<Case>& cases);

// Every sentence is a reason to refuse: rows that are refused, checks that no cheat was caught by,
// claims that came true nowhere.
std::vector<std::string> find_refusals(const std::vector<SeparationRow>& rows,
                                       const std::vector<KnownCandidate>& candidates,
                                       const std::vector<Sighting>& sightings);

// Machines differ in vector width and compiler, and so in the order of sums.
inline constexpr double kDriftFactor = 3;

// Where a stored table is no longer what is measured: rows that came or went, limits that changed,
// figures that moved by more than kDriftFactor. Honest figures below a twentieth of their limit may
// move within that.
std::vector<std::string> find_drift(const std::vector<SeparationRow>& stored,
                                    const std::vector<SeparationRow>& measured);

// The row of least separation for each check and class of cases: a family, or a timed case alone.
struct SeparationClass {
  std::string name;
  int cases = 0;
  SeparationRow worst;
};
std::vector<SeparationClass> worst_of_classes(const std::vector<SeparationRow>& rows,
                                              const std::vector<Case>& cases);

}  // namespace kbeam
