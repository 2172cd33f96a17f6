// What a campaign measures before it searches: the fastest baseline per case, the noise of this
// machine (A/A), and the ceilings that the report draws and the physics floor uses.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "loop/build_queue.h"
#include "loop/machine_roof.h"
#include "loop/progress.h"
#include "model/candidate.h"
#include "model/problem.h"
#include "session/judge.h"

namespace kbeam {

struct CeilingFacts {
  // Ceiling name -> the time that the case would take at that speed, by the quickest of several
  // calls: noise only ever adds time, and the physics floor must not reject an honest candidate.
  std::map<std::string, double> ns;
  double flops = 0;
  double bytes = 0;
};

struct BaselineFacts {
  std::string name;     // "lapack"
  Candidate portfolio;  // per case the fastest baseline setting on one thread
  // The same with every CPU: a setting that is quick alone may be slow beside itself.
  Candidate all_cores_portfolio;
  std::map<std::string, double> case_ns;  // in the A/A control
  // Every baseline of the problem, by name and case, at its best setting: medians of a few calls on
  // one thread, which chose the portfolio.
  std::map<std::string, std::map<std::string, double>> ranked_ns;
  std::map<std::string, double> noise;           // how far the A/A control was from 1
  std::map<std::string, std::string> notes;      // what the libraries say of themselves
  std::map<std::string, CeilingFacts> ceilings;  // by case
  // What the A/A control took, and for how many calls of either side of a case: the yardstick for a
  // promotion.
  double control_s = 0;
  int control_calls = 1;
  MachineRoof roof;
};

struct MachineBench {  // what measuring a baseline needs
  const Problem& problem;
  ProblemCode& code;
  Judge& judge;
  BuildQueue& builds;
  Progress& progress;
  int all_cores = 1;                 // CPUs that candidates may use together
  double control_most_s = 10;        // for looks of the A/A control beyond its first
  std::optional<int> candidate_cpu;  // where the roof of this machine is measured; none on a GPU
};

Result<BaselineFacts> measure_baseline(const MachineBench& bench);
// Rebuilds the rows of a recorded baseline, so that a resumed campaign compares with the same one.
Result<void> restore_baseline(const MachineBench& bench, const BaselineFacts& facts);
// The time that a case would take at its ceilings, or where it has none at the roof of this
// machine; nothing where neither was measured.
std::optional<double> roof_ns(const BaselineFacts& facts, const std::string& case_name);
// Hands noise and floors to the judge.
void apply_baseline(Judge& judge, const BaselineFacts& facts);

Json to_json(const BaselineFacts& facts);
Result<BaselineFacts> baseline_from_json(const Json& json);

// The values of the regime axis at which the timed cases sit.
std::vector<std::pair<std::string, std::int64_t>> regime_points(const Problem& problem);

}  // namespace kbeam
