// What a campaign keeps of its budgets for its end: the confirmations that wait, the promotion, the
// report. Says when the search has to stop for them, and when a confirmation has been earned.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "loop/baseline.h"
#include "loop/budget_watch.h"
#include "measure/stopping_rule.h"
#include "model/campaign.h"
#include "search/search.h"

namespace kbeam {

struct EndTerms {
  Budget budget;
  StoppingRule promote;
  bool on_cpu = true;  // where a promotion has gates
  int all_cores = 1;
};

class EndReserve {
 public:
  // Both are looked at anew with every question.
  EndReserve(EndTerms terms, const BaselineFacts& baseline, const Search& search);

  // Of these champions; of those of the search and of who challenges them.
  double promotion_s(std::vector<Champion> champions) const;
  double promotion_s() const;

  // The budget that holds no more than what is kept; nothing: the search may go on.
  std::optional<StopReason> spent(const BudgetUse& use) const;
  // The time for searching is up, the time that was kept for confirmations is not.
  bool may_still_confirm(StopReason stopped_by, const BudgetUse& use) const;
  // What is left for a promotion once the report is written; whatever it takes, its first look is
  // taken.
  double left_for_promotion_s(const BudgetUse& use) const;

  // A confirmation takes longer than a screen. It waits until the search has earned it, so that the
  // best of many screens is confirmed and not each that was the best for a moment.
  bool confirmation_is_due(double searched_s) const;
  void note_confirmed(std::size_t cases, double took_s);
  double confirming_s() const { return confirming_s_; }

 private:
  double confirmation_s(std::size_t cases) const;

  EndTerms terms_;
  const BaselineFacts& baseline_;
  const Search& search_;
  double confirming_s_ = 0;
  std::size_t confirmed_cases_ = 0;  // in that time
};

}  // namespace kbeam
