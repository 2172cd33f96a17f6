// The outer search: which family gets the next evaluation, in which role, and what is remembered.
// Pure: told of evaluations, asked for proposals. Works for any target and any proposer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/campaign.h"
#include "model/candidate.h"
#include "model/evaluation.h"

namespace kbeam {

// A sketch: an idea with code and knobs, from ideas.toml or from a person.
struct Sketch {
  Idea idea;
  std::string source;
  std::string source_name;
  std::vector<Knob> knobs;
  std::vector<KnobConstraint> constraints;
};

struct SearchConfig {
  std::uint64_t seed = 0;
  int beam = 4;                      // families with a role at one time
  int trials_before_judgement = 12;  // evaluations that a young family gets whatever its speed
  double structural_share = 0.2;     // least share of evaluations for structural and near_miss
  int stagnation = 30;  // evaluations without a champion before structural slots are forced
  std::vector<std::string> cases;  // the timed cases: the regimes
};

struct Proposal {
  Candidate candidate;
  Role role = Role::structural;
  std::string strategy;           // "default", "random", "local_search"
  std::vector<std::string> aims;  // the cases it is meant to win; empty: all
  std::string why;                // for the decision log
};

// What one evaluation showed, against the baseline, per case. Speeds are absent when it was not
// accepted.
struct Observation {
  std::string candidate_id;
  Verdict verdict = Verdict::engine_failed;
  std::map<std::string, double> speedup;  // per case
};

class Search {
 public:
  static std::unique_ptr<Search> make(SearchConfig config, std::vector<Sketch> sketches);
  virtual ~Search() = default;

  // The next candidate, never one that was proposed before; nothing when the space is exhausted.
  virtual std::optional<Proposal> ask() = 0;
  // Order does not matter and any number may be in flight.
  virtual void tell(const Observation& observation) = 0;
  // A family that arrives while the campaign runs (kbeam submit).
  virtual void add(Sketch sketch) = 0;

  // Screening suggests that `candidate_id` beats the champion of these cases: confirm before it
  // counts.
  struct Challenge {
    std::string case_name;
    std::string candidate_id;
    double screened_speedup = 0;
  };
  virtual std::vector<Challenge> challenges() = 0;   // each is returned once
  virtual void crown(const Champion& champion) = 0;  // after confirmation
  virtual void refuse(const std::string& case_name, const std::string& candidate_id,
                      const std::string& why) = 0;

  virtual std::vector<FamilyState> families() const = 0;
  virtual std::vector<Champion> champions() const = 0;
  virtual std::optional<Candidate> find(const std::string& candidate_id) const = 0;
};

// One row a regime from the champions, meeting half way (geometrically) between the cases' axis
// values.
struct RegimePoint {
  std::string case_name;
  std::int64_t axis_value = 0;
};
Candidate assemble_portfolio(const std::vector<Champion>& champions,
                             const std::vector<RegimePoint>& regimes,
                             const std::map<std::string, Candidate>& candidates);

}  // namespace kbeam
