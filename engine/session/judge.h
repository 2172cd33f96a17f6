// One evaluation: a subject is checked on every case and timed against a reference in interleaved
// pairs. Decides nothing about the search; returns an Evaluation whose samples anyone can decide
// from again. How and where it runs is the target's business (cpu_judge.h, cuda_judge.h).
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "measure/stopping_rule.h"
#include "model/evaluation.h"
#include "model/problem.h"
#include "session/subject.h"
#include "target/cpu/runner.h"

namespace kbeam {

struct CompareRequest {
  Subject candidate;
  Subject reference;
  std::vector<Case> check_cases;  // checked in full before anything is timed, in the first process
  std::vector<Case> timed_cases;
  // A promotion times these too, in few pairs: private and sealed cases, for the generality gap.
  std::vector<Case> held_out{};
  StoppingRule rule;
  Stage stage = Stage::manual;
  int threads = 1;
  // A sequential rule takes another look only if it is likely to end within so many seconds.
  double most_s = std::numeric_limits<double>::infinity();
};

class Judge {
 public:
  virtual ~Judge() = default;

  // One full check a case. A failure names the seed and the key that bring the same input back.
  virtual Evaluation check(const Subject& subject, const std::vector<Case>& cases) = 0;

  // What ranks candidates: few pairs, against a reference that may be kept from one screen to the
  // next.
  virtual Evaluation screen(const Subject& candidate, const Subject& reference,
                            const std::vector<Case>& check_cases,
                            const std::vector<Case>& timed_cases) = 0;

  // Fresh processes on both sides, as often as the rule asks, with new base inputs each time.
  virtual Evaluation compare(const CompareRequest& request) = 0;

  // The median times of trusted code (a ceiling, a baseline to choose from), unchecked, and what
  // its plan noted; by case, each of them there.
  struct CeilingTime {
    double median_ns = 0;
    double least_ns = 0;
    std::map<std::string, std::string> notes;
  };
  struct TrustedRequest {
    const Subject& subject;
    std::vector<Case> cases;
    int repeats = 3;
    int threads = 1;
    // By case: a call that takes longer is of no interest and is not repeated.
    std::map<std::string, double> longest_call_s;
  };
  virtual std::map<std::string, Outcome<CeilingTime>> time_trusted(
      const TrustedRequest& request) = 0;

  // How many pairs each stage takes on this target.
  virtual MeasurementRules rules() const = 0;

  // How far from 1 identical subjects were seen to be on a case, once an A/A control has been run:
  // widens delta.
  virtual void set_noise(const std::string& case_name, double aa_noise) = 0;
  // A median below this is not believed: below_physics_floor.
  virtual void set_floor(const std::string& case_name, double least_ns) = 0;
};

}  // namespace kbeam
