// What proposers are told of a campaign, gathered from what the loop knows: families and why they
// failed, near misses, dead ends, the champions' sources. Private cases stay silent, because their
// evaluations are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "loop/baseline.h"
#include "loop/campaign_log.h"
#include "model/evaluation.h"
#include "model/problem.h"
#include "propose/proposer.h"
#include "search/search.h"

namespace kbeam {

// Every judged setting, so far as a proposer may know it.
class AttemptMemory {
 public:
  // The sources and ideas that this run began with or was given before.
  Result<void> restore(const Archive& archive);
  void note_idea(const Idea& idea);
  void note(const Candidate& candidate, const Evaluation& evaluation,
            const std::map<std::string, double>& speedup);

  // Correct, no champion, and close to one on some case; or wrong by little. The closest first, one
  // a family and knobs.
  std::vector<AttemptBrief> near_misses(const std::vector<Champion>& champions) const;
  // One of each family and verdict that failed otherwise, the newest first.
  std::vector<AttemptBrief> dead_ends(const std::vector<FamilyState>& families) const;
  std::vector<std::string> ideas() const;

 private:
  struct Attempt {
    std::string candidate_id;
    AttemptBrief brief;
  };
  std::vector<Attempt> attempts_;
  std::map<std::string, std::string> idea_texts_;  // by id
  std::vector<std::string> idea_order_;
};

struct ContextSources {
  const Problem& problem;
  const std::string& target;
  const Search& search;
  const BaselineFacts& baseline;
  const AttemptMemory& memory;
  std::vector<std::string> steering{};
  int evaluations = 0;
};
ProposalContext make_context(const ContextSources& from);

// How far the champions are from what this machine can do, case by case.
std::string profile_sentence(const BaselineFacts& baseline, const std::vector<Champion>& champions);

}  // namespace kbeam
