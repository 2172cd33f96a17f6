#include "loop/end_reserve.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "loop/promotion_reserve.h"

namespace kbeam {
namespace {

constexpr double kConfirmationOfControl = 0.6;
constexpr double kConfirmShare = 0.25;  // of the search, for confirmations; its last one aside

}  // namespace

EndReserve::EndReserve(EndTerms terms, const BaselineFacts& baseline, const Search& search)
    : terms_(std::move(terms)), baseline_(baseline), search_(search) {}

double EndReserve::promotion_s(std::vector<Champion> champions) const {
  return promotion_reserve_s({.rule = terms_.promote,
                              .baseline = baseline_,
                              .champions = std::move(champions),
                              .on_cpu = terms_.on_cpu,
                              .all_cores = terms_.all_cores});
}

double EndReserve::promotion_s() const {
  std::vector<Champion> champions = search_.champions();
  for (const Search::Challenge& challenge : search_.waiting_challenges()) {
    std::erase_if(champions, [&](const Champion& champion) {
      return champion.case_name == challenge.case_name;
    });
    champions.push_back({.case_name = challenge.case_name,
                         .candidate_id = challenge.candidate_id,
                         .speedup = challenge.screened_speedup});
  }
  return promotion_s(std::move(champions));
}

// The report is written when the device has nothing left to do.
std::optional<StopReason> EndReserve::spent(const BudgetUse& use) const {
  const Budget& budget = terms_.budget;
  if (budget.wall_s <= 0 && budget.device_s <= 0) return std::nullopt;
  const double kept_s = confirmation_s(search_.waiting_challenges().size()) + promotion_s();
  // First the narrower one: device time is part of wall time, so where both are spent at once, as
  // after a slow baseline, it was spent before.
  if (budget.device_s > 0 && use.device_s >= budget.device_s - (kept_s - kReportSeconds))
    return StopReason::budget_device;
  if (budget.wall_s > 0 && use.wall_s >= budget.wall_s - kept_s) return StopReason::budget_wall;
  return std::nullopt;
}

bool EndReserve::may_still_confirm(StopReason stopped_by, const BudgetUse& use) const {
  if (search_.waiting_challenges().empty()) return false;
  if (stopped_by == StopReason::budget_wall)
    return use.wall_s < terms_.budget.wall_s - promotion_s();
  return stopped_by == StopReason::budget_device &&
         use.device_s < terms_.budget.device_s - (promotion_s() - kReportSeconds);
}

double EndReserve::left_for_promotion_s(const BudgetUse& use) const {
  const Budget& budget = terms_.budget;
  double left_s = std::numeric_limits<double>::infinity();
  if (budget.wall_s > 0) left_s = budget.wall_s - use.wall_s - kReportSeconds;
  if (budget.device_s > 0) left_s = std::min(left_s, budget.device_s - use.device_s);
  return std::max(0.0, left_s);
}

// What a confirmation on so many cases takes, by those before it; before any, by the A/A control,
// which is never clear early.
double EndReserve::confirmation_s(std::size_t cases) const {
  const auto all = static_cast<double>(std::max<std::size_t>(1, baseline_.case_ns.size()));
  const double each_s = confirmed_cases_ > 0 ? confirming_s_ / static_cast<double>(confirmed_cases_)
                                             : kConfirmationOfControl * baseline_.control_s / all;
  return static_cast<double>(cases) * each_s;
}

bool EndReserve::confirmation_is_due(double searched_s) const {
  const std::size_t cases = search_.waiting_challenges().size();
  return cases > 0 && confirming_s_ + confirmation_s(cases) <= kConfirmShare * searched_s;
}

void EndReserve::note_confirmed(std::size_t cases, double took_s) {
  confirmed_cases_ += cases;
  confirming_s_ += took_s;
}

}  // namespace kbeam
