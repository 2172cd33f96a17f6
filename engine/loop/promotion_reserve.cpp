#include "loop/promotion_reserve.h"

#include <algorithm>
#include <set>
#include <string>

#include "loop/promotion.h"

namespace kbeam {
namespace {

constexpr double kSlack = 1.25;
// The gates of a promotion on the CPU: equal calls of all small cases, and for each row two builds
// that sanitizers watch, side by side with the others (18 s for five rows on two CPUs).
constexpr double kGateSeconds = 3;
constexpr double kGateSecondsARow = 3.5;

// Calls of either side of one case in the looks that a promotion is expected to take, the untimed
// first ones included.
int calls_of_promotion(const StoppingRule& rule, double speedup) {
  constexpr double kClose = 1.3;
  const bool is_clear = rule.pairs_when_clear > 0 && speedup > rule.pairs_clear_ratio;
  const std::size_t last_look = rule.is_sequential() && speedup < kClose ? 1 : 0;
  const int processes =
      rule.is_sequential() ? rule.looks.at(last_look).processes : process_count(rule);
  int calls = 0;
  for (int process = 0; process < processes; ++process)
    calls += 1 + (is_clear ? rule.pairs_when_clear : pairs_in_process(rule, process));
  return calls;
}

double speedup_on(const std::vector<Champion>& champions, const std::string& case_name) {
  for (const Champion& champion : champions)
    if (champion.case_name == case_name) return champion.speedup;
  return 1;
}

}  // namespace

double promotion_reserve_s(const PromotionOutlook& outlook) {
  const BaselineFacts& baseline = outlook.baseline;
  if (outlook.champions.empty() || baseline.case_ns.empty()) return kReportSeconds;
  double baselines_s = 0;
  for (const auto& [case_name, time_ns] : baseline.case_ns) baselines_s += time_ns * 1e-9;
  const double around_s =
      std::max(0.0, baseline.control_s / baseline.control_calls - 2 * baselines_s) /
      static_cast<double>(baseline.case_ns.size());
  double promotion_s = 0;
  for (const auto& [case_name, time_ns] : baseline.case_ns) {
    const double speedup = speedup_on(outlook.champions, case_name);
    const int calls = calls_of_promotion(outlook.rule, speedup) +
                      (outlook.all_cores > 1 ? kAllCoresPairs + 1 : 0);
    promotion_s += calls * (time_ns * 1e-9 * (1 + 1 / speedup) + around_s);
  }
  if (outlook.on_cpu) {
    std::set<std::string> rows;
    for (const Champion& champion : outlook.champions) rows.insert(champion.candidate_id);
    promotion_s += kGateSeconds + kGateSecondsARow * static_cast<double>(rows.size());
  }
  return kSlack * promotion_s + kReportSeconds;
}

}  // namespace kbeam
