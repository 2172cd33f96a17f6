// kbeam check, bench, compare: one candidate as the judge sees it, outside any run.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/cli/bench_tools.h"
#include "apps/cli/commands.h"
#include "apps/cli/terminal_progress.h"
#include "base/entropy.h"
#include "base/spelling.h"
#include "loop/baseline.h"
#include "measure/statistics.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

Result<std::vector<Case>> chosen_cases(const Problem& problem,
                                       const std::vector<std::string>& named) {
  if (named.empty()) return problem.cases;
  std::vector<Case> cases;
  std::vector<std::string> known;
  for (const Case& the_case : problem.cases) known.push_back(the_case.name);
  for (const std::string& name : named) {
    const Case* const found = problem.find_case(name);
    if (found == nullptr) {
      const auto close = closest_word(name, known);
      return Error{ErrorCode::bad_input, "find case '" + name + "'",
                   "problem " + problem.name + " has no such case",
                   close ? "did you mean " + *close + "?"
                         : fmt::format("choose among {}", fmt::join(known, ", "))};
    }
    cases.push_back(*found);
  }
  return cases;
}

// Builds a candidate; a build that fails is an Evaluation like any other verdict.
Result<std::optional<Evaluation>> build(BenchTools& tools, const Candidate& candidate) {
  const BuiltCandidate built = tools.builds->build_now(candidate);
  if (built.engine_error) return *built.engine_error;
  const Artifact* const failed = built.failed();
  if (failed == nullptr) return std::optional<Evaluation>();
  Evaluation evaluation{.candidate_id = candidate.id, .stage = Stage::manual, .grade = tools.grade};
  evaluation.verdict = failed->verdict;
  evaluation.reason = failed->reason + (failed->log.empty() ? "" : "\n" + failed->log);
  return std::optional<Evaluation>(std::move(evaluation));
}

void print_pool(const char* word, const std::optional<PoolResult>& pool) {
  if (!pool || pool->cases == 0) return;
  fmt::print("  {:<8} {} of {} cases passed", word, pool->passed, pool->cases);
  if (pool->speedup) fmt::print(", {:.3f}x", *pool->speedup);
  fmt::print("\n");
}

// Private cases answer with pass or fail alone, all of them together.
void print_checks(const Problem& problem, const Evaluation& evaluation) {
  for (const CheckReport& report : evaluation.checks) {
    const Case* const the_case = problem.find_case(report.case_name);
    if (the_case == nullptr || the_case->pool != Pool::public_pool) continue;
    fmt::print("  {:<28} {:<12}", report.case_name, to_string(report.verdict));
    for (const CheckFigure& figure : report.figures)
      fmt::print("  {} {:.3g} of {:.3g} {}", figure.name, figure.value, figure.limit, figure.unit);
    fmt::print("\n");
  }
  print_pool("public", evaluation.public_pool);
  print_pool("private", evaluation.private_pool);
}

void print_measurements(const Evaluation& evaluation) {
  for (const Measurement& measurement : evaluation.measurements) {
    const PairedSummary& summary = measurement.summary;
    fmt::print(
        "  {:<14} {:>10.1f} us against {:>10.1f} us  {:.3f}x [{:.3f}, {:.3f}]  {}  ({} pairs, "
        "delta {:.2f} %)\n",
        measurement.case_name, summary.candidate_ns / 1e3, summary.reference_ns / 1e3,
        summary.speedup, summary.low, summary.high, to_string(summary.comparison), summary.pairs,
        100 * measurement.noise_floor);
  }
}

void print_verdict(const Evaluation& evaluation) {
  fmt::print("{}{}\n", to_string(evaluation.verdict),
             evaluation.reason.empty() ? "" : ": " + evaluation.reason);
  for (const std::string& weakness : evaluation.weaknesses) fmt::print("  note: {}\n", weakness);
}

std::string replay_command(const Options& options, const Problem& problem,
                           const Evaluation& evaluation) {
  for (const CheckReport& report : evaluation.checks) {
    const Case* const the_case = problem.find_case(report.case_name);
    if (report.verdict == Verdict::accepted || the_case == nullptr ||
        the_case->pool != Pool::public_pool)
      continue;
    std::string command =
        fmt::format("kbeam check {} --problem {} --case {} --seed {} --key {}", options.get("FILE"),
                    options.get("--problem"), report.case_name, report.seed, report.key);
    for (const std::string& knob : options.all("--knob")) command += " --knob " + knob;
    return command;
  }
  return {};
}

bool faster_everywhere(const Evaluation& evaluation) {
  return evaluation.verdict == Verdict::accepted && !evaluation.measurements.empty() &&
         std::all_of(
             evaluation.measurements.begin(), evaluation.measurements.end(),
             [](const Measurement& m) { return m.summary.comparison == Comparison::faster; });
}

// For proposers: what would let them fit to the private cases is left out.
void keep_public(const Problem& problem, Evaluation& evaluation) {
  std::erase_if(evaluation.checks, [&](const CheckReport& report) {
    const Case* const the_case = problem.find_case(report.case_name);
    return the_case == nullptr || the_case->pool != Pool::public_pool;
  });
  for (CheckReport& report : evaluation.checks) report.seed = report.key = 0;
  for (Measurement& measurement : evaluation.measurements) measurement.samples = {};
  evaluation.held_out.reset();
  evaluation.sealed_seed.reset();
}

int finish(const Options& options, const Evaluation& evaluation, bool yes) {
  if (options.json()) {
    fmt::print("{}\n", json_text(to_json(evaluation)));
  } else {
    print_measurements(evaluation);
    print_verdict(evaluation);
  }
  if (evaluation.verdict == Verdict::engine_failed) return kCannotWork;
  return yes ? kDone : kNo;
}

std::vector<Case> untimed_cases(const Problem& problem) {
  std::vector<Case> cases = problem.cases;
  std::erase_if(cases, [](const Case& the_case) { return the_case.timed; });
  return cases;
}

// Times a candidate against itself, so that what this machine does to equal code is never called a
// difference; the evaluation where that fails.
std::optional<Evaluation> run_control(const BenchTools& tools, const Subject& subject) {
  Judge& judge = *tools.target.judge;
  CompareRequest request{.candidate = subject, .reference = subject};
  request.timed_cases = tools.problem.timed_cases();
  request.rule = judge.rules().control;
  Evaluation control = judge.compare(request);
  if (control.verdict != Verdict::accepted) {
    control.reason = "B, timed against itself as the A/A control: " + control.reason;
    return control;
  }
  for (const Measurement& measurement : control.measurements)
    judge.set_noise(measurement.case_name, aa_noise(measurement.samples, request.rule.confidence));
  return std::nullopt;
}

// The target follows the file's ending.
BenchRequest bench_request(const Options& options, const std::string& file) {
  return {.problem = options.get("--problem"),
          .target = target_of_file(file),
          .grade = options.get("--grade"),
          .seed = random_bits() >> 16,
          .key = std::nullopt};
}

}  // namespace

int check_command(const Options& options) {
  const auto evaluation = [&]() -> Result<Evaluation> {
    BenchRequest request = bench_request(options, options.get("FILE"));
    if (options.has("--seed")) {
      ASSIGN_OR_RETURN(request.seed, parse_number(options.get("--seed"), "--seed"));
    }
    if (options.has("--key") && !options.has("--seed"))
      return Error{ErrorCode::bad_input, "check with --key " + options.get("--key"),
                   "a key names one input of those that a seed makes, and there is no --seed",
                   "give both, as the line that begins with 'to see the same failure again' does"};
    if (options.has("--key")) {
      ASSIGN_OR_RETURN(request.key, parse_number(options.get("--key"), "--key"));
    }
    ASSIGN_OR_RETURN(const auto tools, open_bench_tools(request));
    ASSIGN_OR_RETURN(const Candidate candidate,
                     tools->read_candidate(options.get("FILE"), options.all("--knob")));
    ASSIGN_OR_RETURN(const std::vector<Case> cases,
                     chosen_cases(tools->problem, options.all("--case")));
    ASSIGN_OR_RETURN(const std::optional<Evaluation> not_built, build(*tools, candidate));
    if (not_built) return *not_built;
    Evaluation judged =
        tools->target.judge->check(tools->builds->subject_of(candidate, candidate.id), cases);
    if (!options.json()) {
      print_checks(tools->problem, judged);
      if (const std::string replay = replay_command(options, tools->problem, judged);
          !replay.empty() && !options.has("--public-only"))
        fmt::print("to see the same failure again: {}\n", replay);
    }
    if (options.has("--public-only")) keep_public(tools->problem, judged);
    return judged;
  }();
  if (!evaluation.ok()) return report_error(evaluation.error(), options);
  return finish(options, *evaluation, evaluation->verdict == Verdict::accepted);
}

int bench_command(const Options& options) {
  const auto evaluation = [&]() -> Result<Evaluation> {
    const BenchRequest request = bench_request(options, options.get("FILE"));
    ASSIGN_OR_RETURN(const auto tools, open_bench_tools(request));
    ASSIGN_OR_RETURN(const Candidate candidate,
                     tools->read_candidate(options.get("FILE"), options.all("--knob")));
    ASSIGN_OR_RETURN(const std::optional<Evaluation> not_built, build(*tools, candidate));
    if (not_built) return *not_built;
    TerminalProgress progress(stderr);
    progress.phase("measuring the baseline and the noise of this machine");
    const MachineBench bench{tools->problem, tools->target.library->code(), *tools->target.judge,
                             *tools->builds, progress};
    ASSIGN_OR_RETURN(const BaselineFacts baseline, measure_baseline(bench));
    progress.phase("checking and timing the candidate");
    CompareRequest compare{
        .candidate = tools->builds->subject_of(candidate, candidate.id),
        .reference = tools->builds->subject_of(baseline.portfolio, baseline.portfolio.id)};
    compare.check_cases = untimed_cases(tools->problem);
    compare.timed_cases = tools->problem.timed_cases();
    compare.rule = tools->target.judge->rules().confirm;
    Evaluation judged = tools->target.judge->compare(compare);
    if (options.has("--public-only")) keep_public(tools->problem, judged);
    return judged;
  }();
  if (!evaluation.ok()) return report_error(evaluation.error(), options);
  return finish(options, *evaluation, faster_everywhere(*evaluation));
}

int compare_command(const Options& options) {
  const auto evaluation = [&]() -> Result<Evaluation> {
    const BenchRequest request = bench_request(options, options.get("A"));
    if (target_of_file(options.get("B")) != request.target)
      return Error{ErrorCode::bad_input,
                   "compare " + options.get("A") + " with " + options.get("B"),
                   "one is for the CPU, the other for CUDA: they run on different machines",
                   "compare each with a baseline by `kbeam bench`"};
    ASSIGN_OR_RETURN(const auto tools, open_bench_tools(request));
    ASSIGN_OR_RETURN(const Candidate a,
                     tools->read_candidate(options.get("A"), options.all("--knob-a")));
    ASSIGN_OR_RETURN(const Candidate b,
                     tools->read_candidate(options.get("B"), options.all("--knob-b")));
    for (const Candidate& candidate : {a, b}) {
      ASSIGN_OR_RETURN(const std::optional<Evaluation> not_built, build(*tools, candidate));
      if (not_built) return *not_built;
    }
    CompareRequest compare{.candidate = tools->builds->subject_of(a, a.id),
                           .reference = tools->builds->subject_of(b, b.id)};
    TerminalProgress progress(stderr);
    progress.phase("timing B against itself: the noise of this machine");
    if (auto failed = run_control(*tools, compare.reference)) return *std::move(failed);
    progress.phase("checking A and timing it against B");
    compare.check_cases = untimed_cases(tools->problem);
    compare.timed_cases = tools->problem.timed_cases();
    compare.rule = tools->target.judge->rules().confirm;
    Evaluation judged = tools->target.judge->compare(compare);
    if (options.has("--public-only")) keep_public(tools->problem, judged);
    return judged;
  }();
  if (!evaluation.ok()) return report_error(evaluation.error(), options);
  return finish(options, *evaluation, faster_everywhere(*evaluation));
}

}  // namespace kbeam::cli
