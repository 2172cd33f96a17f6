// What both reports say, computed once from a ReportInput: numbered attempts, the winner per case,
// how the best grew.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/verdict.h"
#include "report/ancestry.h"
#include "report/report.h"

namespace kbeam {

// Pointers lead into the ReportInput, which outlives the facts.
struct AttemptFacts {
  int number = 0;  // from 1
  const Evaluation* evaluation = nullptr;
  const Candidate* candidate = nullptr;           // null when the archive does not know it
  const Idea* idea = nullptr;                     // null when there is none
  std::map<std::string, PairedSummary> per_case;  // against the baseline, on the headline's threads
  std::optional<double> geomean;                  // over per_case
  bool covers_every_case = false;
  int later_attempt = 0;         // the next attempt of the same candidate; 0: none
  std::string decision;          // on the last attempt of a candidate
  bool is_first = false;         // of its candidate
  std::vector<int> parents;      // on a first attempt: the first attempts of what it came from
  bool leads_to_winner = false;  // a first attempt of the winner or of an ancestor of it
  int sketch = -1;               // into ReportFacts::sketches; -1: of several files, or unknown

  std::string family() const { return candidate != nullptr ? candidate->family : "unknown"; }
};

// What of each budget was used, from a summary: "wall time 132 of 180 s, evaluations 53".
std::string budgets_in_words(const Json& summary);

struct CaseFacts {
  std::string name;
  double baseline_ns = 0;
  double candidate_ns = 0;  // of the winner; NaN when there is none
  double speedup = 0;
  double low = 0;
  double high = 0;
  std::string comparison;
  std::string row;  // which row of the winner serves the case: "blocked.cpp, kPanel=32"
  const CaseCeilings* ceilings = nullptr;
};

// One step of the ladder with the geometric mean over all timed cases once it stood; a case without
// a champion counts as 1, the baseline. The interval's ends are the geometric means of the
// champions' ends.
struct LadderFacts {
  const LadderStep* step = nullptr;
  double geomean = 1;
  double low = 1;
  double high = 1;
};

struct VerdictFacts {
  Verdict verdict = Verdict::accepted;
  int count = 0;
  std::string example;  // the first reason given
};

struct ReportFacts {
  std::vector<AttemptFacts> attempts;
  std::vector<CaseFacts> cases;
  std::vector<LadderFacts> ladder;
  std::vector<SketchFacts> sketches;  // in order of appearance
  std::vector<GainFacts> category_gains;
  std::vector<GainFacts> origin_gains;
  std::vector<VerdictFacts> verdicts;  // that occurred, in the order of the enum
  const Candidate* winner = nullptr;
  const Evaluation* promotion = nullptr;  // the last one on the headline's threads, won or not
  double speedup_geomean = 0;             // NaN without a winner
  std::string baseline;
  std::string reach;     // "faster on all 6 cases"
  std::string headline;  // "4.61 x the speed of lapack, faster on all 6 cases"
  std::string grade;
  std::string grade_text;
  std::string started;
  double wall_s = 0;
  int accepted = 0;
  std::string reproduce;  // one command line
};

ReportFacts gather_facts(const ReportInput& input);

// What a promotion looked at beside its timings, as names and sentences: the pools, the generality
// gap, the gates.
std::vector<std::pair<std::string, std::string>> promotion_lines(const Evaluation& promotion);

// Fields of the summary, which a campaign that found nothing leaves out or null.
double summary_number(const Json& object, const std::string& name);     // NaN when absent
std::string summary_text(const Json& object, const std::string& name);  // empty when absent

// Floating-point operations a nanosecond, which is GFLOP/s.
double gflops(double flops, double time_ns);

}  // namespace kbeam
