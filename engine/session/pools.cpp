#include "session/pools.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace kbeam {
namespace {

constexpr char kPrivate[] = "private";  // the name of the one report of all private cases

bool passed(const Evaluation& evaluation, const std::string& case_name) {
  return std::any_of(evaluation.checks.begin(), evaluation.checks.end(),
                     [&](const CheckReport& report) {
                       return report.case_name == case_name && report.verdict == Verdict::accepted;
                     });
}

// Logarithms of the speedups of measured cases, by pool.
std::map<Pool, std::vector<double>> log_speedups(const Evaluation& evaluation,
                                                 const std::map<std::string, Pool>& pools) {
  std::map<Pool, std::vector<double>> logs;
  const auto add = [&](const std::vector<Measurement>& measurements) {
    for (const Measurement& measurement : measurements)
      if (const auto pool = pools.find(measurement.case_name);
          pool != pools.end() && measurement.summary.speedup > 0)
        logs[pool->second].push_back(std::log(measurement.summary.speedup));
  };
  add(evaluation.measurements);
  if (evaluation.held_out) add(*evaluation.held_out);
  return logs;
}

std::optional<double> geometric_mean_of(const std::vector<double>& logs) {
  if (logs.empty()) return std::nullopt;
  double sum = 0;
  for (const double one : logs) sum += one;
  return std::exp(sum / static_cast<double>(logs.size()));
}

}  // namespace

std::string_view pool_word(Pool pool) {
  switch (pool) {
    case Pool::public_pool:
      return "public";
    case Pool::private_pool:
      return kPrivate;
    case Pool::sealed_pool:
      break;
  }
  return "sealed";
}

void tally_pools(Evaluation& evaluation, const std::vector<Case>& cases) {
  std::map<std::string, Pool> pools;
  std::map<Pool, PoolResult> results;
  for (const Case& the_case : cases) {
    if (!pools.emplace(the_case.name, the_case.pool).second) continue;
    const bool is_passed = passed(evaluation, the_case.name);
    PoolResult& result = results[the_case.pool];
    ++result.cases;
    result.passed += is_passed ? 1 : 0;
    if (!is_passed && evaluation.verdict != Verdict::accepted && evaluation.failed_case.empty())
      evaluation.failed_case = the_case.name;
  }
  if (PoolResult& hidden = results[Pool::private_pool]; hidden.passed < hidden.cases)
    hidden.passed = 0;
  auto logs = log_speedups(evaluation, pools);
  for (auto& [pool, result] : results) result.speedup = geometric_mean_of(logs[pool]);
  evaluation.public_pool = results[Pool::public_pool];
  evaluation.private_pool = results[Pool::private_pool];
  evaluation.sealed_pool = results[Pool::sealed_pool];
  std::vector<double> unseen = logs[Pool::private_pool];
  unseen.insert(unseen.end(), logs[Pool::sealed_pool].begin(), logs[Pool::sealed_pool].end());
  const auto elsewhere = geometric_mean_of(unseen);
  evaluation.generality_gap.reset();
  if (elsewhere && evaluation.public_pool->speedup)
    evaluation.generality_gap = *evaluation.public_pool->speedup / *elsewhere - 1;
}

void silence_private_cases(Evaluation& evaluation, const std::vector<Case>& cases) {
  std::set<std::string> names;
  for (const Case& the_case : cases)
    if (the_case.pool == Pool::private_pool) names.insert(the_case.name);
  CheckReport one{.case_name = kPrivate, .verdict = Verdict::accepted};
  const std::size_t before = evaluation.checks.size();
  std::erase_if(evaluation.checks, [&](const CheckReport& report) {
    if (!names.contains(report.case_name)) return false;
    one.grade = report.grade;
    one.outputs_checked += report.outputs_checked;
    if (report.verdict != Verdict::accepted) one.verdict = Verdict::failed_private;
    return true;
  });
  if (names.contains(evaluation.failed_case)) one.verdict = Verdict::failed_private;
  if (one.verdict != Verdict::accepted) one.outputs_checked = 0;  // would tell which one failed
  if (evaluation.checks.size() < before || one.verdict != Verdict::accepted)
    evaluation.checks.push_back(std::move(one));
}

}  // namespace kbeam
