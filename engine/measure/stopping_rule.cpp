#include "measure/stopping_rule.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace kbeam {
namespace {

// Pairs and processes that one look adds to those before it.
struct LookStep {
  int pairs = 0;
  int processes = 0;
};

LookStep step_of(const StoppingRule& rule, std::size_t look) {
  const Look before = look == 0 ? Look{} : rule.looks[look - 1];
  const LookStep step{rule.looks[look].pairs - before.pairs,
                      rule.looks[look].processes - before.processes};
  CHECK(step.processes > 0 && step.pairs >= step.processes,
        "each look of a stopping rule adds processes, and each of these has a pair");
  return step;
}

int looks_of(const StoppingRule& rule) {
  if (rule.is_sequential()) return static_cast<int>(rule.looks.size());
  return rule.clear_ratio > 1 ? rule.processes : 1;
}

std::string joined(const std::vector<Look>& looks) {
  std::string text;
  for (const Look& look : looks) text += (text.empty() ? "" : ", ") + std::to_string(look.pairs);
  return text;
}

}  // namespace

std::string StoppingRule::text() const {
  return is_sequential() ? name + ": sequential " + joined(looks)
                         : name + ": fixed " + std::to_string(pairs_per_process) + " x " +
                               std::to_string(processes);
}

int process_count(const StoppingRule& rule) {
  return rule.is_sequential() ? rule.looks.back().processes : rule.processes;
}

int pairs_in_process(const StoppingRule& rule, int process) {
  if (!rule.is_sequential()) return rule.pairs_per_process;
  for (std::size_t look = 0; look < rule.looks.size(); ++look) {
    const LookStep step = step_of(rule, look);
    if (process < step.processes)
      return step.pairs / step.processes + (process < step.pairs % step.processes ? 1 : 0);
    process -= step.processes;
  }
  return 0;
}

std::optional<int> look_after(const StoppingRule& rule, int process) {
  if (!rule.is_sequential()) return process + 1 == rule.processes ? std::optional(1) : std::nullopt;
  const auto found = std::ranges::find(rule.looks, process + 1, &Look::processes);
  if (found == rule.looks.end()) return std::nullopt;
  return static_cast<int>(found - rule.looks.begin()) + 1;
}

double interval_confidence(const StoppingRule& rule) {
  return 1 - (1 - rule.confidence) / (looks_of(rule) * std::max(1, rule.claims));
}

double joint_confidence(const StoppingRule& rule) {
  return 1 - (1 - rule.confidence) / looks_of(rule);
}

std::optional<std::string> may_end_early(const StoppingRule& rule,
                                         std::span<const Measurement> measurements) {
  const auto all = [&](auto holds) {
    return !measurements.empty() &&
           std::all_of(measurements.begin(), measurements.end(),
                       [&](const Measurement& m) { return holds(m.summary); });
  };
  if (rule.clear_ratio > 1 && all([&](const PairedSummary& summary) {
        return summary.low > rule.clear_ratio || summary.high < 1 / rule.clear_ratio;
      }))
    return "clear: every interval lies beyond " + std::to_string(rule.clear_ratio);
  if (rule.futile_speedup > 0 &&
      all([&](const PairedSummary& summary) { return summary.speedup <= rule.futile_speedup; }))
    return "futile: no median reaches " + std::to_string(rule.futile_speedup);
  return std::nullopt;
}

bool may_skip_pairs(const StoppingRule& rule, const PairedSamples& of_process) {
  const std::size_t pairs = of_process.candidate_ns.size();
  if (rule.pairs_when_clear < 1 || pairs < static_cast<std::size_t>(rule.pairs_when_clear))
    return false;
  bool all_above = true;
  bool all_below = true;
  for (std::size_t i = 0; i < pairs; ++i) {
    const double ratio = of_process.reference_ns[i] / of_process.candidate_ns[i];
    all_above = all_above && ratio > rule.pairs_clear_ratio;
    all_below = all_below && ratio < 1 / rule.pairs_clear_ratio;
  }
  return all_above || all_below;
}

// Online control of the false discovery rate: the n-th test gets 1 / (n (n + 1)) of the allowance,
// times one more than the successes before it.
double challenge_confidence(int test, int successes) {
  constexpr double kFalseShare = 0.05;
  constexpr double kMostRisk = 0.01;
  CHECK(test >= 1 && successes >= 0, "tests are counted from 1");
  const double share = (successes + 1.0) / (test * (test + 1.0));
  return 1 - std::min(kMostRisk, kFalseShare * share);
}

StoppingRule sequential_rule(const std::string& name) {
  return {.name = name,
          .fresh_base = true,
          // Two ABBA blocks beyond a factor of two in each of six processes reach any confidence
          // that a promotion asks for.
          .pairs_when_clear = 4,
          .looks = {{31, 6}, {61, 12}, {121, 18}, {241, 30}}};
}

MeasurementRules cpu_rules() {
  return {.control = sequential_rule("a/a"),
          .screen = {.name = "screen", .pairs_per_process = 5, .processes = 1, .fresh_base = true},
          // The first look sees gains of a tenth and more, the others what is worth a closer look.
          .confirm = {.name = "confirm",
                      .fresh_base = true,
                      .futile_speedup = 1.005,
                      .looks = {{16, 3}, {31, 6}, {61, 12}}},
          .promote = sequential_rule("promote")};
}

// A worker on a GPU takes the pairs of a task in one sitting: its rules are fixed.
MeasurementRules device_rules() {
  return {.control = {.name = "a/a", .pairs_per_process = 4, .processes = 1},
          .screen = {.name = "screen",
                     .pairs_per_process = 5,
                     .processes = 1,
                     .fresh_base = true,
                     .pairs_when_clear = 2},
          .confirm = {.name = "confirm",
                      .pairs_per_process = 10,
                      .processes = 4,
                      .fresh_base = true,
                      .futile_speedup = 1.005,
                      .pairs_when_clear = 4},
          .promote = {.name = "promote",
                      .pairs_per_process = 16,
                      .processes = 6,
                      .fresh_base = true,
                      .pairs_when_clear = 6}};
}

}  // namespace kbeam
