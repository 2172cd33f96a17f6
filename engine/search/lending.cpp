#include "search/lending.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace kbeam {
namespace {

constexpr double kStrong = 0.9;    // of the speed to beat: regimes worth borrowing for
constexpr double kGained = 1.05;   // over the lender's default: more than noise
constexpr int kLeastAccepted = 3;  // settings of the lender, before its best says something

// The borrower's regimes, those where it is nearest to the speed to beat first: at least one.
std::vector<std::string> strong_cases(const SketchTuning& borrower, const Standings& standings) {
  std::vector<std::pair<double, std::string>> ranked;
  for (const auto& [case_name, arm] : borrower.arms()) {
    const auto standing = standings.find(case_name);
    if (arm.best <= 0 || standing == standings.end() || standing->second.speedup <= 0) continue;
    ranked.push_back({-arm.best / standing->second.speedup, case_name});
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> cases;
  for (const auto& [near, case_name] : ranked)
    if (cases.empty() || -near >= kStrong) cases.push_back(case_name);
  return cases;
}

bool learned(const SketchTuning& lender, const Arm& arm) {
  const auto fallback = arm.scores.find(lender.defaults());
  return lender.accepted() >= kLeastAccepted && fallback != arm.scores.end() &&
         arm.best > kGained * fallback->second;
}

const Arm* find_lender(std::size_t borrower, const std::string& case_name, const SearchView& view) {
  const Arm* best = nullptr;
  for (std::size_t i = 0; i < view.sketches.size(); ++i) {
    if (i == borrower) continue;
    const Arm& arm = view.sketches[i].arms().at(case_name);
    if ((!best || arm.best > best->best) && learned(view.sketches[i], arm)) best = &arm;
  }
  return best;
}

}  // namespace

std::optional<Loan> borrow(std::size_t borrower, const SearchView& view) {
  SketchTuning& tuning = view.sketches[borrower];
  for (const std::string& case_name : strong_cases(tuning, view.standings)) {
    const Arm* const lender = find_lender(borrower, case_name, view);
    if (!lender) continue;
    if (auto suggestion = tuning.suggest_borrowed(case_name, *best_setting(*lender)))
      return Loan{case_name, std::move(*suggestion)};
  }
  return std::nullopt;
}

}  // namespace kbeam
