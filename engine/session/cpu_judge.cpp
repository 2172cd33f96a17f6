#include "session/cpu_judge.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>

#include "base/defence.h"
#include "base/entropy.h"
#include "check/case_check.h"
#include "measure/comparison_course.h"
#include "measure/statistics.h"
#include "session/cpu_gates.h"
#include "session/pools.h"
#include "session/timing_lock.h"

namespace kbeam {
namespace {

constexpr double kTimerResolutionNs = 100;
// Below this many empty calls a bracket says more about the bracket than about the kernel.
constexpr double kLeastBracketInEmptyCalls = 200;
// One timed output in fifty, at secret, gets the full check instead of the projection.
constexpr std::uint64_t kFullCheckOneIn = 50;
// In a promotion one in eight: an error that the projection forgives must not slip through all of
// them.
constexpr std::uint64_t kFullCheckOneInPromoted = 8;
// A held-out case whose call is shorter than so many empty ones has a speedup of the bracket, not
// of the kernel.
constexpr double kLeastHeldOutInEmptyCalls = 20;
constexpr int kHeldOutPairs = 3;

// Adds the seconds of its life to `total_s`.
class Stopwatch {
 public:
  Stopwatch(const Clock& clock, double& total_s)
      : clock_(clock), total_s_(total_s), began_ns_(clock.monotonic_ns()) {}
  ~Stopwatch() { total_s_ += static_cast<double>(clock_.monotonic_ns() - began_ns_) * 1e-9; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  const Clock& clock_;
  double& total_s_;
  std::int64_t began_ns_;
};

void append(const PairedSamples& from, PairedSamples& to) {
  const auto add = [](const auto& values, auto& list) {
    list.insert(list.end(), values.begin(), values.end());
  };
  add(from.candidate_ns, to.candidate_ns);
  add(from.reference_ns, to.reference_ns);
  add(from.candidate_first, to.candidate_first);
  add(from.process, to.process);
}

std::vector<Case> joined(const std::vector<Case>& a, const std::vector<Case>& b) {
  std::vector<Case> all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace

// The evaluation in hand, and the seconds it has used.
struct CpuJudge::Trial {
  Evaluation evaluation;
  std::vector<double> empty_call_ns;
  std::vector<std::string> lacking;  // what of the gates this machine does not give
  std::vector<Case> cases;  // all that this evaluation is about, in the order in which they run
  std::int64_t began_ns = 0;
  double limit_s = std::numeric_limits<double>::infinity();

  bool fail(Verdict verdict, std::string reason) {
    evaluation.verdict = verdict;
    evaluation.reason = std::move(reason);
    return false;
  }
  CheckReport& report_for(const std::string& case_name, const std::string& grade) {
    for (CheckReport& report : evaluation.checks)
      if (report.case_name == case_name) return report;
    evaluation.checks.push_back({.case_name = case_name, .grade = grade});
    return evaluation.checks.back();
  }
  // A private case gives pass or fail and nothing that could be tuned against. A sealed one was
  // drawn for this evaluation alone and may speak.
  bool fail_on(const Case& the_case, Verdict verdict, const std::string& sentence) {
    evaluation.failed_case = the_case.name;
    if (the_case.pool != Pool::private_pool || !defence_is_on(Defence::private_silence))
      return fail(verdict, fmt::format("case {} ({}, {}): {}", the_case.name,
                                       pool_word(the_case.pool), the_case.family, sentence));
    if (verdict == Verdict::engine_failed) return fail(verdict, sentence);
    return fail(Verdict::failed_private, "failed a private case");
  }
  bool take(const Case& the_case, CheckReport report, std::uint64_t input_seed) {
    report.seed = input_seed;
    merge_reports(report_for(the_case.name, report.grade), report);
    return report.verdict == Verdict::accepted ||
           fail_on(the_case, report.verdict, report.sentence);
  }
};

CpuJudge::CpuJudge(const Problem& problem, ProblemCode& code, JudgeOptions options,
                   const Clock& clock)
    : problem_(problem),
      code_(code),
      options_(std::move(options)),
      clock_(clock),
      bank_(problem, code) {}

CpuSeat CpuJudge::seat(int threads) const {
  CpuSeat seat;
  seat.runner = options_.runner;
  seat.least_sandbox = options_.least_sandbox;
  seat.call_timeout_s = options_.call_timeout_s;
  seat.cpus = options_.candidate_cpus;
  seat.cpus.resize(std::min<std::size_t>(seat.cpus.size(), static_cast<std::size_t>(threads)));
  return seat;
}

void CpuJudge::set_noise(const std::string& case_name, double aa_noise) {
  noise_[case_name] = aa_noise;
}

void CpuJudge::set_floor(const std::string& case_name, double least_ns) {
  floor_ns_[case_name] = least_ns;
}

double CpuJudge::delta_for(const std::string& case_name, double bracket_ns) const {
  const auto found = noise_.find(case_name);
  return noise_floor(found == noise_.end() ? 0 : found->second, kTimerResolutionNs, bracket_ns);
}

bool CpuJudge::start(Trial& trial, const Subject& subject, int threads, std::span<const Case> cases,
                     std::unique_ptr<BenchProcess>& process) {
  auto started = BenchProcess::start(problem_, code_, subject, seat(threads), cases);
  if (!started.ok()) return trial.fail(Verdict::engine_failed, started.error().text());
  if (!started->ok()) return trial.fail(started->failure.verdict, started->failure.sentence);
  process = std::move(*started->value);
  trial.evaluation.sandbox = process->sandbox();
  trial.evaluation.weaknesses = process->weaknesses();
  return true;
}

bool CpuJudge::may_go_on(Trial& trial) const {
  if (options_.give_up && options_.give_up())
    return trial.fail(Verdict::engine_failed, "the evaluation was interrupted");
  const double used_s = static_cast<double>(clock_.monotonic_ns() - trial.began_ns) * 1e-9;
  return used_s <= trial.limit_s ||
         trial.fail(Verdict::timed_out,
                    fmt::format("its evaluation took more than {:.0f} s in all", trial.limit_s));
}

// The reference's troubles are never the candidate's, and neither is its sandbox.
bool CpuJudge::start_reference(Trial& trial, const Subject& reference, int threads,
                               std::span<const Case> cases,
                               std::unique_ptr<BenchProcess>& process) {
  Trial aside;
  return start(aside, reference, threads, cases, process) ||
         trial.fail(Verdict::engine_failed,
                    "the reference did not start: " + aside.evaluation.reason);
}

bool CpuJudge::check_cases(Trial& trial, BenchProcess& process, const std::vector<Case>& cases,
                           std::uint64_t input_seed) {
  for (const Case& the_case : cases) {
    if (the_case.pool != Pool::public_pool && !defence_is_on(Defence::private_cases)) continue;
    if (!may_go_on(trial)) return false;
    const Outcome<bool> prepared =
        process.prepare(the_case, bank_.inputs_for(the_case, input_seed));
    if (!prepared.ok())
      return trial.fail_on(the_case, prepared.failure.verdict, prepared.failure.sentence);
    const CheckRequest request{CheckDepth::full, options_.grade, random_bits()};
    const std::uint64_t key = options_.fixed_key.value_or(random_bits());
    const Outcome<CheckedCall> called = process.call(key, request);
    if (!called.ok())
      return trial.fail_on(the_case, called.failure.verdict, called.failure.sentence);
    if (!trial.take(the_case, called.value->report, input_seed)) return false;
  }
  return true;
}

bool CpuJudge::time_case(Trial& trial, BenchProcess& candidate, BenchProcess& reference,
                         const Case& the_case, std::uint64_t input_seed, const Portion& portion,
                         Measurement& measurement) {
  const std::span<const TensorView> base = bank_.inputs_for(the_case, input_seed);
  struct Side {
    BenchProcess& process;
    bool is_candidate;
  };
  Side sides[2] = {{candidate, true}, {reference, false}};
  for (Side& side : sides) {
    const Outcome<bool> prepared = side.process.prepare(the_case, base);
    if (prepared.ok()) continue;
    if (side.is_candidate)
      return trial.fail_on(the_case, prepared.failure.verdict, prepared.failure.sentence);
    return trial.fail(Verdict::engine_failed,
                      "the reference failed to plan: " + prepared.failure.sentence);
  }
  // One call of `side` on the content of `key`: its time, or nothing when the evaluation has
  // failed.
  std::uint64_t base_seed = input_seed;
  const auto call = [&](Side& side, std::uint64_t key, CheckDepth depth) -> std::optional<double> {
    const Outcome<CheckedCall> called =
        side.process.call(key, {depth, options_.grade, random_bits()});
    if (!called.ok() && side.is_candidate) {
      trial.fail_on(the_case, called.failure.verdict, called.failure.sentence);
      return std::nullopt;
    }
    if (!called.ok() || (!side.is_candidate && called.value->report.verdict != Verdict::accepted)) {
      trial.fail(
          Verdict::engine_failed,
          fmt::format("the reference failed on case {}: {}", the_case.name,
                      called.ok() ? called.value->report.sentence : called.failure.sentence));
      return std::nullopt;
    }
    if (side.is_candidate && defence_is_on(Defence::every_output_checked) &&
        !trial.take(the_case, called.value->report, base_seed))
      return std::nullopt;
    return static_cast<double>(called.value->wall_ns);
  };
  // The first call of a process pays for page faults and lazy binding: it is checked in full and
  // not counted.
  if (!call(sides[0], random_bits(), CheckDepth::full)) return false;
  if (!call(sides[1], random_bits(), CheckDepth::quick)) return false;
  const bool fresh_base = portion.rule.fresh_base && defence_is_on(Defence::fresh_base);
  bool candidate_first = false;
  PairedSamples samples;  // of these processes
  for (int pair = 0; pair < portion.pairs; ++pair) {
    if (!may_go_on(trial)) return false;
    // AB BA blocks: the first order of a block is drawn, the second is its mirror, so the order
    // effect cancels.
    candidate_first = pair % 2 == 0 ? random_bits() % 2 == 0 : !candidate_first;
    const std::uint64_t key = random_bits();
    // Freshening alone keeps the result computable from an older one (a permutation, a sign), so
    // every pair gets matrices that its processes have never seen.
    const std::uint64_t pair_seed =
        derive_seed(input_seed, "pair", static_cast<std::uint64_t>(pair));
    if (fresh_base) {
      const std::span<const TensorView> fresh = bank_.inputs_for(the_case, pair_seed);
      candidate.use_base(fresh);
      reference.use_base(fresh);
      base_seed = pair_seed;
    }
    double time_ns[2] = {0, 0};
    for (int turn = 0; turn < 2; ++turn) {
      const int index = (turn == 0) == candidate_first ? 0 : 1;
      const std::uint64_t one_in =
          sides[index].is_candidate ? portion.one_full_in : kFullCheckOneIn;
      const CheckDepth depth = random_bits() % one_in == 0 ? CheckDepth::full : CheckDepth::quick;
      const std::optional<double> time = call(sides[index], key, depth);
      if (!time) return false;
      time_ns[index] = *time;
    }
    // Both processes of a screen end with it: the next screen may use the same base inputs.
    if (fresh_base && input_seed != screen_seed()) bank_.forget(pair_seed);
    samples.candidate_ns.push_back(time_ns[0]);
    samples.reference_ns.push_back(time_ns[1]);
    samples.candidate_first.push_back(candidate_first ? 1 : 0);
    samples.process.push_back(portion.process);
    if (pair % 2 == 1 && may_skip_pairs(portion.rule, samples)) break;
  }
  append(samples, measurement.samples);
  return true;
}

bool CpuJudge::time_cases(Trial& trial, BenchProcess& candidate, BenchProcess& reference,
                          const CompareRequest& request, std::uint64_t input_seed,
                          ComparisonCourse& course) {
  const auto lock = TimingLock::acquire(options_.on_lock_wait);
  if (!lock.ok()) return trial.fail(Verdict::engine_failed, lock.error().text());
  for (int i = 0; i < 3; ++i)
    if (const Outcome<CallTime> empty = candidate.empty_call(); empty.ok())
      trial.empty_call_ns.push_back(static_cast<double>(empty.value->wall_ns));
  std::vector<Measurement>& measurements = trial.evaluation.measurements;
  if (measurements.empty())
    for (const Case& the_case : request.timed_cases)
      measurements.push_back({.case_name = the_case.name,
                              .reference = request.reference.id,
                              .threads = request.threads,
                              .samples = {},
                              .stopping_rule = request.rule.text(),
                              .stop_reason = "all pairs taken",
                              .noise_floor = 0,
                              .summary = {}});
  const Portion portion{
      request.rule, course.process(), course.pairs(),
      request.stage == Stage::promote ? kFullCheckOneInPromoted : kFullCheckOneIn};
  for (std::size_t i = 0; i < request.timed_cases.size(); ++i)
    if (course.is_open(i) && !time_case(trial, candidate, reference, request.timed_cases[i],
                                        input_seed, portion, measurements[i]))
      return false;
  course.end_process(measurements);
  return true;
}

// The last word on a trial: what weakens it, and whether a time is too good to be true.
void CpuJudge::finish(Trial& trial) {
  Evaluation& evaluation = trial.evaluation;
  const double empty_ns = median(trial.empty_call_ns);
  for (const Measurement& measurement : evaluation.measurements) {
    // Measured on one CPU; several are at most so many times as fast.
    const auto floor = floor_ns_.find(measurement.case_name);
    const double floor_ns = floor == floor_ns_.end() ? 0 : floor->second / measurement.threads;
    if (evaluation.verdict == Verdict::accepted && measurement.summary.candidate_ns < floor_ns)
      trial.fail(Verdict::below_physics_floor,
                 fmt::format("case {}: {:.0f} ns is below {:.0f} ns, the least in which this "
                             "machine can move the bytes and do the arithmetic of the case",
                             measurement.case_name, measurement.summary.candidate_ns, floor_ns));
    if (measurement.summary.candidate_ns < kLeastBracketInEmptyCalls * empty_ns)
      evaluation.weaknesses.push_back(
          fmt::format("case {}: a call of {:.0f} us is shorter than {} empty calls of {:.1f} us",
                      measurement.case_name, measurement.summary.candidate_ns / 1e3,
                      kLeastBracketInEmptyCalls, empty_ns / 1e3));
  }
  evaluation.weaknesses.insert(evaluation.weaknesses.end(), trial.lacking.begin(),
                               trial.lacking.end());
  evaluation.ended_unix_ms = clock_.unix_ms();
  if (!trial.cases.empty()) {
    tally_pools(evaluation, trial.cases);
    if (defence_is_on(Defence::private_silence)) silence_private_cases(evaluation, trial.cases);
  }
  evaluation = make_evaluation(std::move(evaluation));
}

// Opens a trial, lets `body` fill it, and closes it. Problem code is trusted but may throw: that is
// no candidate's fault.
Evaluation CpuJudge::conduct(const Subject& candidate, Stage stage,
                             const std::function<void(Trial&)>& body) {
  Trial trial;
  trial.evaluation = {.candidate_id = candidate.id,
                      .stage = stage,
                      .verdict = Verdict::accepted,
                      .grade = options_.grade};
  trial.evaluation.started_unix_ms = clock_.unix_ms();
  trial.began_ns = clock_.monotonic_ns();
  try {
    body(trial);
  } catch (const std::exception& trouble) {
    trial.fail(Verdict::engine_failed,
               "the code of problem " + problem_.name + " threw: " + trouble.what());
  }
  finish(trial);
  return std::move(trial.evaluation);
}

Evaluation CpuJudge::check(const Subject& subject, const std::vector<Case>& cases) {
  return conduct(subject, Stage::manual, [&](Trial& trial) {
    const Stopwatch watch(clock_, trial.evaluation.check_s);
    trial.cases = cases;
    // On one worker and on all: splitting the work can go wrong in ways of its own.
    const int all = static_cast<int>(options_.candidate_cpus.size());
    const bool on_all = all > 1 && defence_is_on(Defence::all_workers_checked);
    for (const int threads : on_all ? std::vector{1, all} : std::vector{1}) {
      std::unique_ptr<BenchProcess> process;
      if (!start(trial, subject, threads, cases, process) ||
          !check_cases(trial, *process, cases, options_.seed))
        return;
    }
  });
}

std::uint64_t CpuJudge::screen_seed() const {
  return derive_seed(options_.seed, "screen");
}

Evaluation CpuJudge::screen(const Subject& candidate, const Subject& reference,
                            const std::vector<Case>& check_cases_list,
                            const std::vector<Case>& timed_cases) {
  return conduct(candidate, Stage::screen, [&](Trial& trial) {
    trial.limit_s = options_.screen_timeout_s;
    trial.cases = joined(check_cases_list, timed_cases);
    const std::uint64_t input_seed = screen_seed();
    std::unique_ptr<BenchProcess> process;
    {
      const Stopwatch watch(clock_, trial.evaluation.check_s);
      if (!start(trial, candidate, 1, joined(check_cases_list, timed_cases), process)) return;
      if (!check_cases(trial, *process, check_cases_list, input_seed)) return;
    }
    const Stopwatch watch(clock_, trial.evaluation.measure_s);
    // New like the candidate's: a reference that has seen the inputs could slow its rivals'
    // screens.
    std::unique_ptr<BenchProcess> reference_process;
    if (!start_reference(trial, reference, 1, timed_cases, reference_process)) return;
    const CompareRequest request{.candidate = candidate,
                                 .reference = reference,
                                 .check_cases = {},
                                 .timed_cases = timed_cases,
                                 .rule = rules().screen,
                                 .stage = Stage::screen,
                                 .threads = 1};
    ComparisonCourse course = course_of(request);
    time_cases(trial, *process, *reference_process, request, input_seed, course);
  });
}

Evaluation CpuJudge::compare(const CompareRequest& request) {
  return conduct(request.candidate, request.stage, [&](Trial& trial) {
    trial.cases = joined(joined(request.check_cases, request.timed_cases), request.held_out);
    if (request.stage == Stage::promote && !may_be_promoted(trial, request)) return;
    ComparisonCourse course = course_of(request);
    const std::int64_t pairs_began_ns = clock_.monotonic_ns();
    while (!course.is_over()) {
      // Drawn now, after the candidate was fixed: nothing that it was tuned on comes back.
      const std::uint64_t input_seed = random_bits();
      const bool alive = compare_in_fresh_processes(trial, request, input_seed, course);
      bank_.forget(input_seed);
      if (!alive) return;
      const std::int64_t now_ns = clock_.monotonic_ns();
      const double used_s = static_cast<double>(now_ns - trial.began_ns) * 1e-9;
      const double pairs_s = static_cast<double>(now_ns - pairs_began_ns) * 1e-9;
      if (course.is_at_look() && used_s + pairs_s * course.growth() > request.most_s)
        course.cut_short(trial.evaluation.measurements, "no time for another look");
    }
    if (!request.held_out.empty()) time_held_out(trial, request);
  });
}

bool CpuJudge::may_be_promoted(Trial& trial, const CompareRequest& request) {
  if (best_sandbox() == SandboxLevel::none)
    return trial.fail(Verdict::engine_failed,
                      "without a sandbox a candidate may be checked, but not promoted: `kbeam "
                      "doctor` says what this machine lacks");
  // On all cores the same candidate comes a second time.
  return request.threads > 1 || pass_the_gates(trial, request);
}

bool CpuJudge::pass_the_gates(Trial& trial, const CompareRequest& request) {
  const Stopwatch watch(clock_, trial.evaluation.check_s);
  if (!options_.build_watched) {
    trial.lacking.emplace_back("no sanitizers here: nobody watched memory and races");
    return true;
  }
  const std::uint64_t input_seed = random_bits();
  GateOutcome outcome =
      pass_gates({.problem = problem_,
                  .code = code_,
                  .bank = bank_,
                  .clock = clock_,
                  .subject = request.candidate,
                  .seat = seat(static_cast<int>(options_.candidate_cpus.size())),
                  .grade = options_.grade,
                  .input_seed = input_seed,
                  .cases = choose_gate_cases(problem_, request.candidate,
                                             joined(request.check_cases, request.timed_cases)),
                  .build_watched = options_.build_watched,
                  .give_up = options_.give_up});
  bank_.forget(input_seed);
  trial.evaluation.gates = std::move(outcome.passed);
  if (!outcome.finding) return true;
  const GateFinding& finding = *outcome.finding;
  const std::string sentence =
      fmt::format("promotion gate {}: {}", finding.gate, finding.failure.sentence);
  if (finding.where)
    trial.fail_on(*finding.where, finding.failure.verdict, sentence);
  else
    trial.fail(finding.failure.verdict, sentence);
  trial.evaluation.gates->push_back({.name = finding.gate,
                                     .verdict = trial.evaluation.verdict,
                                     .sentence = trial.evaluation.reason});
  return false;
}

// In few pairs: how much of the speedup is special to the cases that everybody knows.
bool CpuJudge::time_held_out(Trial& trial, const CompareRequest& request) {
  CompareRequest aside = request;
  aside.check_cases.clear();
  aside.timed_cases = request.held_out;
  aside.rule = {.name = "held out", .pairs_per_process = kHeldOutPairs, .fresh_base = true};
  std::vector<Measurement> counted = std::exchange(trial.evaluation.measurements, {});
  ComparisonCourse course = course_of(aside);
  const std::uint64_t input_seed = random_bits();
  const bool alive = compare_in_fresh_processes(trial, aside, input_seed, course);
  bank_.forget(input_seed);
  std::vector<Measurement> held_out =
      std::exchange(trial.evaluation.measurements, std::move(counted));
  const double least_ns = kLeastHeldOutInEmptyCalls * median(trial.empty_call_ns);
  std::erase_if(held_out, [&](const Measurement& measurement) {
    return !(measurement.summary.candidate_ns >= least_ns);
  });
  trial.evaluation.held_out = std::move(held_out);
  return alive;
}

ComparisonCourse CpuJudge::course_of(const CompareRequest& request) const {
  return {request.rule, request.timed_cases.size(),
          [this](const std::string& case_name, double bracket_ns) {
            return delta_for(case_name, bracket_ns);
          }};
}

bool CpuJudge::compare_in_fresh_processes(Trial& trial, const CompareRequest& request,
                                          std::uint64_t input_seed, ComparisonCourse& course) {
  std::unique_ptr<BenchProcess> candidate;
  std::unique_ptr<BenchProcess> reference;
  {
    const Stopwatch watch(clock_, trial.evaluation.check_s);
    const std::vector<Case> all = joined(request.check_cases, request.timed_cases);
    if (!start(trial, request.candidate, request.threads, all, candidate)) return false;
    if (!start_reference(trial, request.reference, request.threads, request.timed_cases, reference))
      return false;
    if (course.process() == 0 && !check_cases(trial, *candidate, request.check_cases, input_seed))
      return false;
  }
  const Stopwatch watch(clock_, trial.evaluation.measure_s);
  return time_cases(trial, *candidate, *reference, request, input_seed, course);
}

MeasurementRules CpuJudge::rules() const {
  return cpu_rules();
}

std::map<std::string, Outcome<Judge::CeilingTime>> CpuJudge::time_trusted(
    const TrustedRequest& request) {
  std::map<std::string, Outcome<CeilingTime>> times;
  for (const Case& the_case : request.cases)
    times.emplace(the_case.name, time_trusted_case(request, the_case));
  return times;
}

Outcome<Judge::CeilingTime> CpuJudge::time_trusted_case(const TrustedRequest& request,
                                                        const Case& the_case) {
  using Timed = Outcome<CeilingTime>;
  Trial trial;
  std::unique_ptr<BenchProcess> process;
  if (!start(trial, request.subject, request.threads, std::span(&the_case, 1), process))
    return Timed{std::nullopt, {trial.evaluation.verdict, trial.evaluation.reason}};
  const std::uint64_t input_seed = screen_seed();
  const Outcome<bool> prepared = process->prepare(the_case, bank_.inputs_for(the_case, input_seed));
  if (!prepared.ok()) return Timed{std::nullopt, prepared.failure};
  const auto lock = TimingLock::acquire(options_.on_lock_wait);
  if (!lock.ok()) return Timed{std::nullopt, {Verdict::engine_failed, lock.error().text()}};
  const auto limit = request.longest_call_s.find(the_case.name);
  std::vector<double> times_ns;
  for (int i = 0; i <= request.repeats; ++i) {
    const Outcome<std::int64_t> time = process->call_unchecked(random_bits());
    if (!time.ok()) return Timed{std::nullopt, time.failure};
    const auto time_ns = static_cast<double>(*time.value);
    if (limit != request.longest_call_s.end() && time_ns > 1e9 * limit->second)
      return Timed{std::nullopt,
                   {Verdict::timed_out,
                    fmt::format("a call took {:.3g} s, longer than the {:.3g} s of interest",
                                1e-9 * time_ns, limit->second)}};
    if (i > 0) times_ns.push_back(time_ns);
  }
  const double least_ns = *std::min_element(times_ns.begin(), times_ns.end());
  return Timed{CeilingTime{median(times_ns), least_ns, process->notes()}, {}};
}

}  // namespace kbeam
