// Goals: "speedup >= 6 and case n512 <= 2ms". Comparisons joined by and / or (and binds tighter),
// no parentheses.
//   speedup, speedup(NAME)  geometric mean over the timed cases against the baseline (NAME must be
//                           its name)
//   geomean                 geometric mean of the winner's times
//   case NAME               the time of one case
//   roofline(CASE)          the share of the case's roof: the time that the case would take at the
//                           ceilings of the problem, or where it has none at what this machine can
//                           do, over the time that it takes
//   slower                  on how many timed cases the winner may lose to the baseline; without
//                           this term: none
//   best                    on the right side: the same quantity of the baseline, with an optional
//                           factor: best * 0.98
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/problem.h"

namespace kbeam {

// What a goal is held against: confirmed figures only.
struct GoalFigures {
  std::map<std::string, double> case_ns;
  std::map<std::string, double> baseline_ns;
  std::map<std::string, double> roof_ns;  // what the ceilings allow; without a case: unknown
};

class Goal {
 public:
  static Result<Goal> parse(const std::string& text, const std::vector<std::string>& cases,
                            const std::string& baseline);
  // For the timed cases and baselines of a problem.
  static Result<Goal> parse(const std::string& text, const Problem& problem);
  bool met_by(const GoalFigures& figures) const;
  bool empty() const { return any_of_.empty(); }
  int slower_allowed() const;                     // the most that any of its terms allows
  std::vector<std::string> roofs_wanted() const;  // the cases of its roofline terms

 private:
  enum class Quantity { speedup, geomean, one_case, roofline, slower };
  struct Term {
    Quantity quantity = Quantity::speedup;
    std::string case_name;
    std::string comparison;  // <= < >= >
    double value = 0;        // a plain number, nanoseconds, or a factor of the baseline's figure
    enum class Unit { number, ns, of_best } unit = Unit::number;
  };
  static bool holds(const Term& term, const GoalFigures& figures);
  std::vector<std::vector<Term>> any_of_;  // a disjunction of conjunctions
};

}  // namespace kbeam
