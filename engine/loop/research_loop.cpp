#include "loop/research_loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "base/affinity.h"
#include "base/clock.h"
#include "base/entropy.h"
#include "base/hash.h"
#include "loop/activity.h"
#include "loop/baseline.h"
#include "loop/budget_watch.h"
#include "loop/build_queue.h"
#include "loop/campaign_log.h"
#include "loop/campaign_search.h"
#include "loop/challenges.h"
#include "loop/contributions.h"
#include "loop/end_reserve.h"
#include "loop/goal.h"
#include "loop/inbox.h"
#include "loop/lineup.h"
#include "loop/metered_judge.h"
#include "loop/pace.h"
#include "loop/promotion.h"
#include "loop/proposal_context.h"
#include "loop/proposals.h"
#include "loop/steering.h"
#include "loop/summary.h"
#include "loop/target_tools.h"
#include "measure/statistics.h"
#include "model/json_forms.h"
#include "report/report.h"
#include "search/search.h"

namespace kbeam {
namespace {

constexpr int kMostEngineFailures = 5;  // in a row: then the machine is unfit and the run stops
constexpr int kPromotionAttempts =
    3;  // a portfolio that fails sealed checks loses the row that failed
constexpr double kControlShare = 0.05;  // of the budget, for the A/A control
constexpr double kLongestControl = 60;
// Far beyond what a candidate worth having takes, short enough that a slow one cannot eat a
// campaign. On a GPU the first screens are paired with vendors' routines, a second a call.
constexpr double kMostScreenSeconds = 45;
constexpr double kMostDeviceScreenSeconds = 600;

class Campaign {
 public:
  Campaign(const CampaignSetup& setup, Progress& progress, const std::atomic<bool>& interrupted)
      : setup_(setup),
        progress_(progress),
        interrupted_(interrupted),
        meter_(clock_),
        device_meter_(clock_),
        inbox_(setup.run_folder),
        watch_(setup.config.budget) {}

  // A build that is still under way is not waited for.
  ~Campaign() { closing_ = true; }
  Campaign(const Campaign&) = delete;
  Campaign& operator=(const Campaign&) = delete;

  Result<CampaignOutcome> run() {
    RETURN_IF_ERROR(
        open_tools());  // compiler, problem code, judge; everything is pinned from here on
    RETURN_IF_ERROR(open_archive());  // what happened before is replayed into the search
    RETURN_IF_ERROR(
        establish_baseline());  // what "faster" means here, and how noisy this machine is
    RETURN_IF_ERROR(search_until_stopped());  // from here on every attempt is in the archive
    RETURN_IF_ERROR(promote_portfolio());     // only what passes here is called a winner
    return conclude();                        // summary and reports, from the archive alone
  }

 private:
  Result<void> open_tools();
  Result<void> open_archive();
  Result<void> establish_baseline();
  Result<void> search_until_stopped();
  Result<void> promote_portfolio();
  Result<CampaignOutcome> conclude();

  StopReason stop_reason();
  bool asked_to_stop() const { return interrupted_ || inbox_.stop_waits(); }
  double used_s() const { return history_.used_s + meter_.wall_s() - paused_s_; }
  double device_used_s() const { return history_.device_s + device_meter_.busy_s(); }
  Used used() const {
    return {.screened = history_.evaluations,
            .used_s = used_s(),
            .busy_s = history_.busy_s + meter_.busy_s(),
            .device_s = device_used_s()};
  }
  BudgetUse use(const Used& used) const {
    const ModelTotals& models = pump_->totals();
    return {used.used_s, used.screened, used.device_s, models.tokens(), models.usage.money};
  }
  BudgetUse use() const { return use(used()); }
  // Written down with whatever took the time, so that no life of the run forgets it.
  Result<void> write_usage() { return log_->usage(used(), setup_.config.budget); }
  Result<void> listen();
  Listener listener() {
    return {inbox_, *log_, *search_, progress_, history_.steering, setup_.config.target};
  }
  Result<void> take_proposals();
  bool wait_for_proposals();
  Result<void> watch_budgets();
  void fill_pipeline();
  Result<void> attempt(const BuiltCandidate& built);
  Evaluation judge_candidate(const BuiltCandidate& built);
  Result<void> settle_challenges();
  Evaluation measured(const CompareRequest& request);
  Result<void> settle(const Candidate& candidate, const std::vector<Case>& cases);
  void tell_progress();
  Standing standing() const { return {history_.crowned, history_.contenders}; }
  Result<void> tell_of_contenders(const Lineup& lineup);
  Result<Promotion> promote_now(const BuiltCandidate& built);
  Result<void> record_promotion(const BuiltCandidate& built);

  FindCandidate finder() const {
    return [this](const std::string& id) { return search_->find(id); };
  }
  Result<Subject> reference_subject();
  Result<BuiltCandidate> rebuilt(const Candidate& candidate, const char* attempted);
  double reference_speedup(const std::string& case_name) const;
  void note_reference_speedups(Evaluation& evaluation) const;
  GoalFigures goal_figures() const;
  MachineBench bench() {
    const double budget_s = setup_.config.budget.wall_s;
    MachineBench bench{setup_.problem, tools_.library->code(), *tools_.judge, *builds_, progress_};
    bench.all_cores = all_cores();
    bench.control_most_s = budget_s > 0 ? kControlShare * budget_s : kLongestControl;
    if (setup_.config.target == "cpu") bench.candidate_cpu = setup_.config.candidate_cpus.front();
    return bench;
  }
  // CPUs that candidates may use together; a GPU candidate has the whole device anyway.
  int all_cores() const {
    return setup_.config.target == "cpu" ? static_cast<int>(setup_.config.candidate_cpus.size())
                                         : 1;
  }

  std::atomic<bool> closing_{false};
  const CampaignSetup& setup_;
  Progress& progress_;
  const std::atomic<bool>& interrupted_;
  SystemClock clock_;
  ActivityMeter meter_;
  ActivityMeter device_meter_;  // outlives the judge
  Inbox inbox_;
  BudgetWatch watch_;
  Goal goal_;

  TargetTools tools_;
  std::unique_ptr<BuildQueue> builds_;
  NewsBell bell_;  // rung by proposers, so it outlives them
  std::unique_ptr<ProposalPump> pump_;
  AttemptMemory memory_;  // what proposers are told of
  bool idle_ = false;     // nothing to do but wait for them
  std::unique_ptr<CampaignLog> log_;
  std::unique_ptr<Search> search_;
  Environment environment_;

  History history_;
  BaselineFacts baseline_;
  std::optional<EndReserve> reserve_;  // once the baseline stands
  double search_began_s_ = 0;
  double search_ended_s_ = 0;
  double paused_s_ = 0;
  int evaluations_before_ = 0;  // in an earlier life of this run
  int engine_failures_ = 0;
  std::map<std::string, Proposal> proposals_;        // in flight, by candidate id
  std::map<std::string, std::string> objects_seen_;  // object hash -> candidate id
  std::map<std::string, Observation> observations_;  // by candidate id
  StopReason stop_reason_ = StopReason::running;
  std::string lock_holder_;
  std::optional<Promotion> promotion_;
  std::string not_promoted_because_;
};

// Over all that a promoted candidate is: its rows as they will ship, and the code that was judged.
std::string frozen_hash(const Candidate& candidate, const std::vector<Artifact>& artifacts) {
  Hasher hasher;
  hasher.field(json_text(to_json(candidate)));
  for (const Artifact& artifact : artifacts) hasher.field(artifact.object_hash);
  return hasher.hex();
}

Result<void> Campaign::open_tools() {
  progress_.phase("preparing the compiler and the problem");
  const ActivityMeter::Span busy(meter_);
  const auto on_lock_wait = [this](const std::string& holder) {
    if (std::exchange(lock_holder_, holder) !=
        holder)  // said once a holder, not once a measurement
      progress_.event("waiting for the timing lock of this machine, held by " + holder);
  };
  ASSIGN_OR_RETURN(
      tools_,
      open_target({.problem = setup_.problem,
                   .home = setup_.home,
                   .clock = clock_,
                   .target = setup_.config.target,
                   .cache = setup_.cache,
                   .grade = setup_.grade,
                   .seed = setup_.config.seed,
                   .fixed_key = std::nullopt,
                   .candidate_cpus = setup_.config.candidate_cpus,
                   .builds_give_way = true,
                   .screen_timeout_s = setup_.config.target == "cpu" ? kMostScreenSeconds
                                                                     : kMostDeviceScreenSeconds,
                   .builds_cancelled = [this] { return closing_.load(); },
                   .give_up = [this] { return asked_to_stop(); },
                   .say = [this](std::string_view line) { progress_.event(line); },
                   .on_lock_wait = on_lock_wait}));
  tools_.judge = make_metered_judge(std::move(tools_.judge), device_meter_);
  ASSIGN_OR_RETURN(environment_, probe_environment(tools_.compiler->version(),
                                                   tools_.compiler->candidate_flags()));
  ASSIGN_OR_RETURN(goal_, Goal::parse(setup_.config.goal, setup_.problem));
  // Made before the pin below: builds may use every CPU, at idle priority.
  builds_ = std::make_unique<BuildQueue>(*tools_.compiler, setup_.problem.compile_flags, meter_);
  ASSIGN_OR_RETURN(auto proposers, setup_.make_proposers(bell_));
  pump_ = std::make_unique<ProposalPump>(std::move(proposers), setup_.config.budget,
                                         setup_.config.target);
  // The judge keeps one CPU and candidates get another, so that neither waits for the other
  // (decision 0003).
  pin_this_thread(setup_.config.judge_cpu);
  return {};
}

Result<void> Campaign::open_archive() {
  const std::filesystem::path file = setup_.run_folder / "archive.sqlite";
  const bool resumed = std::filesystem::exists(file);
  ASSIGN_OR_RETURN(auto archive, resumed ? Archive::open_for_append(file)
                                         : Archive::create(file, setup_.config, environment_));
  if (const Environment then = archive->environment();
      resumed && (then.cpu != environment_.cpu || then.compiler != environment_.compiler))
    return Error{ErrorCode::bad_input, "resume " + setup_.config.run_id,
                 fmt::format("it ran on {} with {}; this is {} with {}", then.cpu, then.compiler,
                             environment_.cpu, environment_.compiler),
                 "times of two machines cannot be compared: start a new run here"};
  log_ = std::make_unique<CampaignLog>(std::move(archive));

  ASSIGN_OR_RETURN(CampaignSearch made, make_search(setup_.problem, setup_.config));
  search_ = std::move(made.search);
  const Result<void> kept = log_->archive().together([&]() -> Result<void> {
    for (const Idea& idea : made.ideas) RETURN_IF_ERROR(log_->archive().append_idea(idea));
    if (resumed) return {};
    return log_->archive().append_event("proposers", {{"settings", setup_.proposers}});
  });
  RETURN_IF_ERROR(kept);
  for (const std::string& source : made.sources) pump_->note_source(source);
  RETURN_IF_ERROR(memory_.restore(log_->archive()));
  if (resumed) {
    RETURN_IF_ERROR(pump_->restore(*log_));
    inbox_.take_stop();  // one that was meant for the run before
    ASSIGN_OR_RETURN(history_, log_->replay(*search_, make_sketch));
    objects_seen_ = history_.objects_seen;
    observations_ = history_.observations;
    RETURN_IF_ERROR(log_->new_notices(search_->notices()));
    RETURN_IF_ERROR(end_pause(listener(), "kbeam resume"));
    progress_.event(fmt::format("resumed after {} evaluations and {:.0f} s", history_.evaluations,
                                history_.used_s));
  }
  return {};
}

Result<void> Campaign::establish_baseline() {
  const double began_s = meter_.wall_s();
  const ActivityMeter::Span busy(meter_);
  if (history_.baseline) {
    baseline_ = *history_.baseline;
    RETURN_IF_ERROR(restore_baseline(bench(), baseline_));
  } else {
    progress_.phase("measuring the baseline and the noise of this machine");
    ASSIGN_OR_RETURN(baseline_, measure_baseline(bench()));
    RETURN_IF_ERROR(log_->baseline(baseline_));
  }
  RETURN_IF_ERROR(write_usage());
  for (const std::string& case_name : goal_.roofs_wanted())
    if (!roof_ns(baseline_, case_name))
      return Error{ErrorCode::bad_input, "read the goal '" + setup_.config.goal + "'",
                   "no ceiling of case " + case_name + " could be measured here",
                   "give the problem a [[ceiling]] for this target, or set another goal"};
  for (const auto& [case_name, noise] : baseline_.noise)
    search_->set_delta(case_name, std::expm1(noise));
  reserve_.emplace(EndTerms{.budget = setup_.config.budget,
                            .promote = tools_.judge->rules().promote,
                            .on_cpu = setup_.config.target == "cpu",
                            .all_cores = all_cores()},
                   baseline_, *search_);
  search_began_s_ = meter_.wall_s();
  evaluations_before_ = history_.evaluations;
  progress_.event(
      fmt::format("baseline {} ready after {:.1f} s", baseline_.name, meter_.wall_s() - began_s));
  // Of a promotion as most are: one champion everywhere, half as fast again as the baseline.
  std::vector<Champion> likely;
  for (const auto& [case_name, time_ns] : baseline_.case_ns)
    likely.push_back({.case_name = case_name, .candidate_id = "likely", .speedup = 1.5});
  const Pace pace = pace_of(baseline_, tools_.judge->rules().screen, reserve_->promotion_s(likely));
  progress_.event("estimate: " + describe_room(pace, use(), setup_.config.budget));
  return {};
}

StopReason Campaign::stop_reason() {
  const Budget& budget = setup_.config.budget;
  if (interrupted_ || inbox_.take_stop()) return StopReason::asked_to_stop;
  if (const auto spent = pump_->spent(idle_)) return *spent;
  if (budget.evaluations > 0 && history_.evaluations >= budget.evaluations)
    return StopReason::budget_evaluations;
  if (const auto spent = reserve_->spent(use())) return *spent;
  if (!goal_.empty() && goal_.met_by(goal_figures())) return StopReason::goal_met;
  return StopReason::running;
}

Result<void> Campaign::search_until_stopped() {
  progress_.phase("searching");
  RETURN_IF_ERROR(settle_challenges());  // that a killed run left open
  for (;;) {
    stop_reason_ = stop_reason();
    if (reserve_->may_still_confirm(stop_reason_, use())) {
      RETURN_IF_ERROR(settle_challenges());
      continue;  // where that took less than was kept for it, the search goes on
    }
    if (stop_reason_ != StopReason::running) break;
    RETURN_IF_ERROR(listen());
    if (asked_to_stop()) continue;
    RETURN_IF_ERROR(take_proposals());
    RETURN_IF_ERROR(watch_budgets());
    fill_pipeline();
    if (builds_->in_flight() == 0) {
      RETURN_IF_ERROR(settle_challenges());  // nothing else is there to do
      if (wait_for_proposals()) continue;
      stop_reason_ = StopReason::exhausted;
      break;
    }
    idle_ = false;
    RETURN_IF_ERROR(attempt(builds_->pop()));
    const double searched_s = meter_.wall_s() - paused_s_ - search_began_s_;
    if (reserve_->confirmation_is_due(searched_s)) RETURN_IF_ERROR(settle_challenges());
    RETURN_IF_ERROR(log_->roles(search_->families()));
    tell_progress();
  }
  const bool is_out_of_time =
      stop_reason_ == StopReason::budget_wall || stop_reason_ == StopReason::budget_device;
  if (!asked_to_stop() && !is_out_of_time) RETURN_IF_ERROR(settle_challenges());
  search_ended_s_ = meter_.wall_s() - paused_s_;
  RETURN_IF_ERROR(pump_->close(*log_, {history_.evaluations, idle_}));
  return log_->families(search_->families());
}

Result<void> Campaign::take_proposals() {
  const auto context = [this] {
    return make_context({.problem = setup_.problem,
                         .target = setup_.config.target,
                         .search = *search_,
                         .baseline = baseline_,
                         .memory = memory_,
                         .steering = history_.steering.texts(),
                         .evaluations = history_.evaluations});
  };
  const auto add = [this](Sketch sketch) {
    memory_.note_idea(sketch.idea);
    search_->add(std::move(sketch));
  };
  return pump_->take(*log_, {context, add, &progress_}, {history_.evaluations, idle_});
}

Result<void> Campaign::watch_budgets() {
  for (const BudgetWarning& warning : watch_.look(use())) {
    progress_.event(warning.text);
    RETURN_IF_ERROR(log_->archive().append_event(
        "budget_warning", {{"budget", warning.budget}, {"percent", warning.percent}}));
  }
  return {};
}

// False when nobody will bring anything. A model at work is no overhead of the engine.
bool Campaign::wait_for_proposals() {
  constexpr double kLookAgain = 0.2;  // at the inbox and the budget
  idle_ = true;
  if (pump_->spent(idle_)) return true;
  if (!pump_->may_bring_more()) return false;
  const ActivityMeter::Span busy(meter_);
  bell_.wait(kLookAgain);
  return true;
}

// Paused, it goes on listening. The time does not count: nobody wanted anything done.
Result<void> Campaign::listen() {
  RETURN_IF_ERROR(take_inbox(listener()));
  const double before_s = meter_.wall_s();
  RETURN_IF_ERROR(wait_while_paused(listener(), [this] { return asked_to_stop(); }));
  paused_s_ += meter_.wall_s() - before_s;
  return {};
}

void Campaign::fill_pipeline() {
  while (builds_->in_flight() < static_cast<std::size_t>(kBuildsAhead)) {
    std::optional<Proposal> proposal = search_->ask();
    if (!proposal) return;
    builds_->push(proposal->candidate);
    proposals_[proposal->candidate.id] = std::move(*proposal);
  }
}

// A resumed run has champions and challengers whose rows this process has not built yet; the cache
// makes that cheap. What was built once may fail to build now, on a machine that has other work.
Result<BuiltCandidate> Campaign::rebuilt(const Candidate& candidate, const char* attempted) {
  BuiltCandidate built = builds_->build_now(candidate);
  if (built.engine_error) return *built.engine_error;
  if (const Artifact* failed = built.failed())
    return Error{ErrorCode::unavailable, attempted, failed->reason,
                 "has the compiler changed since the run began, or this machine too much to do?"};
  return built;
}

Result<Subject> Campaign::reference_subject() {
  const Candidate reference =
      reference_portfolio(setup_.problem, search_->champions(), baseline_.portfolio, finder());
  RETURN_IF_ERROR(rebuilt(reference, "rebuild the champions"));
  return builds_->subject_of(reference, candidate_id(reference));
}

double Campaign::reference_speedup(const std::string& case_name) const {
  for (const Champion& champion : search_->champions())
    if (champion.case_name == case_name) return champion.speedup;
  return 1;
}

void Campaign::note_reference_speedups(Evaluation& evaluation) const {
  for (Measurement& measurement : evaluation.measurements)
    measurement.reference_speedup = reference_speedup(measurement.case_name);
}

GoalFigures Campaign::goal_figures() const {
  GoalFigures figures;
  figures.baseline_ns = baseline_.case_ns;
  for (const auto& [case_name, time_ns] : baseline_.case_ns)
    if (const auto roof = roof_ns(baseline_, case_name)) figures.roof_ns[case_name] = *roof;
  for (const Champion& champion : search_->champions())
    figures.case_ns[champion.case_name] =
        baseline_.case_ns.at(champion.case_name) / champion.speedup;
  return figures;
}

Evaluation Campaign::judge_candidate(const BuiltCandidate& built) {
  Evaluation evaluation{
      .candidate_id = built.candidate.id, .stage = Stage::screen, .grade = setup_.grade};
  evaluation.started_unix_ms = evaluation.ended_unix_ms = clock_.unix_ms();
  if (built.engine_error) {
    evaluation.reason = built.engine_error->text();
  } else if (const Artifact* failed = built.failed()) {
    evaluation.verdict = failed->verdict;
    evaluation.reason = failed->reason;
  } else {
    std::vector<Case> check_cases;
    for (const Case& the_case : setup_.problem.cases)
      if (!the_case.timed) check_cases.push_back(the_case);
    const Result<Subject> reference = reference_subject();
    if (!reference.ok()) {
      evaluation.reason = reference.error().text();
      return evaluation;
    }
    const ActivityMeter::Span busy(meter_);
    evaluation = tools_.judge->screen(builds_->subject_of(built.candidate, built.candidate.id),
                                      *reference, check_cases, setup_.problem.timed_cases());
    note_reference_speedups(evaluation);
  }
  for (const Artifact& artifact : built.artifacts) evaluation.build_s += artifact.build_s;
  return evaluation;
}

Result<void> Campaign::attempt(const BuiltCandidate& built) {
  const Proposal proposal = proposals_[built.candidate.id];
  proposals_.erase(built.candidate.id);
  Observation observation{.candidate_id = built.candidate.id};
  Evaluation evaluation;
  std::string decision = "screened";
  std::string why = proposal.strategy + ": " + proposal.why;

  const std::string object = built.artifacts.size() == 1 && built.failed() == nullptr
                                 ? built.artifacts.front().object_hash
                                 : std::string();
  const auto twin = objects_seen_.find(object);
  if (!object.empty() && twin != objects_seen_.end()) {
    // The compiler made the same code of it: what was measured then holds now.
    observation = observations_[twin->second];
    observation.candidate_id = built.candidate.id;
    evaluation = {.candidate_id = built.candidate.id,
                  .stage = Stage::screen,
                  .verdict = observation.verdict,
                  .reason = "the same machine code as " + twin->second,
                  .grade = setup_.grade};
    decision = "duplicate of " + twin->second;
  } else {
    evaluation = judge_candidate(built);
    if (asked_to_stop()) return {};  // the attempt in hand is lost, and nothing else
    if (evaluation.verdict == Verdict::engine_failed)
      evaluation = judge_candidate(built);  // ours: once more
    observation.verdict = evaluation.verdict;
    for (const Measurement& measurement : evaluation.measurements)
      observation.speedup[measurement.case_name] =
          ranking_speedup(measurement.samples) * reference_speedup(measurement.case_name);
    if (!object.empty() && evaluation.verdict != Verdict::engine_failed)
      objects_seen_[object] = built.candidate.id;
    if (evaluation.verdict != Verdict::accepted) {
      decision = "rejected";
      why = evaluation.reason;
    }
  }
  evaluation.id = log_->next_evaluation_id();
  engine_failures_ = evaluation.verdict == Verdict::engine_failed ? engine_failures_ + 1 : 0;
  if (engine_failures_ >= kMostEngineFailures)
    return Error{ErrorCode::unavailable, "evaluate candidates", evaluation.reason,
                 "see `kbeam doctor`; then `kbeam resume " + setup_.config.run_id + "`"};
  // Together: a killed run has all of an attempt or nothing.
  const Result<void> kept = log_->archive().together([&]() -> Result<void> {
    RETURN_IF_ERROR(log_->attempt(built, evaluation, decision, why));
    Used after = used();
    ++after.screened;
    return log_->observation(observation, after);
  });
  RETURN_IF_ERROR(kept);
  observations_[built.candidate.id] = observation;
  std::map<std::string, double> to_beat;
  for (const Champion& champion : search_->champions())
    to_beat[champion.case_name] = champion.speedup;
  pump_->judged(built, evaluation, observation.speedup, to_beat);
  memory_.note(built.candidate, evaluation, observation.speedup);
  search_->tell(observation);
  ++history_.evaluations;
  if (blame_of(observation.verdict) == Blame::candidate) ++history_.rejects[observation.verdict];
  std::string best;
  for (const auto& [case_name, speedup] : observation.speedup)
    best += fmt::format(" {} {:.2f}x", case_name, speedup);
  progress_.attempt(
      fmt::format("{} {} [{}] {}{}", evaluation.id, built.candidate.family,
                  describe_knobs(built.candidate.rows.front().knobs), to_string(evaluation.verdict),
                  best.empty() ? " (" + evaluation.reason.substr(0, 160) + ")" : best));
  return {};
}

// A screen ranks, it never crowns: whoever looks better than a champion is measured again, on new
// seeds, in fresh processes, and only where it looks better.
Result<void> Campaign::settle_challenges() {
  const double before_s = meter_.wall_s();
  std::size_t confirmed_cases = 0;
  std::map<std::string, std::vector<Case>> by_candidate;
  for (const Search::Challenge& challenge : search_->challenges())
    if (const Case* the_case = setup_.problem.find_case(challenge.case_name)) {
      by_candidate[challenge.candidate_id].push_back(*the_case);
      ++confirmed_cases;
    }
  for (const auto& [id, cases] : by_candidate) {
    const auto candidate = search_->find(id);
    if (candidate && !interrupted_) RETURN_IF_ERROR(settle(*candidate, cases));
  }
  reserve_->note_confirmed(confirmed_cases, meter_.wall_s() - before_s);
  for (const Search::Notice& notice : search_->notices()) {
    RETURN_IF_ERROR(log_->archive().append_decision({notice.what, notice.subject, notice.why}));
    progress_.event(notice.what + ": " + notice.why);
  }
  return {};
}

Evaluation Campaign::measured(const CompareRequest& request) {
  const ActivityMeter::Span busy(meter_);
  return tools_.judge->compare(request);
}

Result<void> Campaign::settle(const Candidate& candidate, const std::vector<Case>& cases) {
  RETURN_IF_ERROR(rebuilt(candidate, "rebuild a challenger"));
  ASSIGN_OR_RETURN(const Subject reference, reference_subject());
  CompareRequest request{.candidate = builds_->subject_of(candidate, candidate.id),
                         .reference = reference};
  request.timed_cases = cases;
  request.rule = tools_.judge->rules().confirm;
  history_.challenges += static_cast<int>(cases.size());
  request.rule.confidence =
      challenge_confidence(history_.challenges, static_cast<int>(history_.crowned.size()));
  request.stage = Stage::confirm;
  Evaluation evaluation = measured(request);
  if (evaluation.verdict == Verdict::engine_failed && !asked_to_stop())
    evaluation = measured(request);  // ours: once more
  if (asked_to_stop()) return {};
  if (evaluation.verdict == Verdict::engine_failed)  // nobody was measured
    history_.challenges -= static_cast<int>(cases.size());
  evaluation.id = log_->next_evaluation_id();
  note_reference_speedups(evaluation);
  const std::vector<Settlement> settled =
      settle_cases(candidate, cases, evaluation, search_->champions());
  // Together: a killed run settles all cases of a confirmation or none.
  const Result<void> kept = log_->archive().together([&]() -> Result<void> {
    RETURN_IF_ERROR(log_->confirmation(evaluation));
    RETURN_IF_ERROR(write_usage());
    for (const Settlement& one : settled)
      RETURN_IF_ERROR(one.crowned ? log_->crowned(one.champion, one.why) : log_->refused(one));
    return {};
  });
  RETURN_IF_ERROR(kept);
  for (const Settlement& one : settled) {
    const std::string& case_name = one.champion.case_name;
    if (!one.crowned) {
      search_->refuse(case_name, candidate.id, one.why);
      if (one.contender) history_.contenders.push_back(*one.contender);
      continue;
    }
    search_->crown(one.champion);
    history_.crowned.push_back(one.champion);
    progress_.event(fmt::format("{}: {} {} leads with {:.2f}x {}", case_name, candidate.family,
                                describe_knobs(candidate.rows.front().knobs), one.champion.speedup,
                                baseline_.name));
  }
  return {};
}

void Campaign::tell_progress() {
  ProgressView view;
  view.round = 1 + history_.evaluations / std::max(1, setup_.config.beam);
  view.used_s = used_s();
  view.budget_s = setup_.config.budget.wall_s;
  view.evaluations = history_.evaluations;
  view.budget_evaluations = setup_.config.budget.evaluations;
  view.device_s = device_used_s();
  view.budget_device_s = setup_.config.budget.device_s;
  view.tokens = pump_->totals().tokens();
  view.budget_tokens = setup_.config.budget.tokens;
  view.money = pump_->totals().usage.money;
  view.budget_money = setup_.config.budget.money;
  view.rejects = history_.rejects;
  view.families = search_->families();
  view.champions = search_->champions();
  std::vector<double> speedups;
  for (const Champion& champion : view.champions) speedups.push_back(champion.speedup);
  if (speedups.size() == regime_points(setup_.problem).size())
    view.best_speedup = geometric_mean(speedups);
  progress_.refresh(view);
}

Result<void> Campaign::promote_portfolio() {
  if (stop_reason_ == StopReason::asked_to_stop) {
    not_promoted_because_ = "stopped before promotion; resume the run to finish it";
    return {};
  }
  progress_.phase("promoting the portfolio on sealed inputs");
  Bans bans;
  for (int attempt = 0; attempt < kPromotionAttempts; ++attempt) {
    const std::optional<Lineup> lineup =
        assemble_winner(setup_.problem, standing(), bans, finder());
    if (!lineup) {
      not_promoted_because_ = "no candidate was confirmed faster than the baseline on any case";
      return {};
    }
    ASSIGN_OR_RETURN(const BuiltCandidate built,
                     rebuilt(lineup->portfolio, "rebuild the portfolio"));
    // Promoted once: repeating it until it passes would be no promotion.
    ASSIGN_OR_RETURN(promotion_, log_->find_promotion(lineup->portfolio, history_.promotions));
    const bool is_recorded = promotion_.has_value();
    if (!is_recorded) {
      RETURN_IF_ERROR(tell_of_contenders(*lineup));
      ASSIGN_OR_RETURN(promotion_, promote_now(built));
    }
    if (asked_to_stop()) {
      promotion_.reset();
      stop_reason_ = StopReason::asked_to_stop;
      inbox_.take_stop();
      not_promoted_because_ = "stopped during promotion; resume the run to finish it";
      return {};
    }
    if (!is_recorded) RETURN_IF_ERROR(record_promotion(built));
    not_promoted_because_ = why_not_won(*promotion_);
    if (not_promoted_because_.empty()) return {};
    progress_.event("the portfolio failed its promotion: " + not_promoted_because_);
    if (engine_failed(*promotion_)) continue;  // ours: once more, and nobody is to blame
    if (!ban_what_failed(*promotion_, *lineup, standing(), finder(), bans)) return {};
  }
  return {};
}

Result<void> Campaign::tell_of_contenders(const Lineup& lineup) {
  for (const Contender& one : lineup.in_place) {
    const std::string why = fmt::format(
        "{:.3f}x [{:.3f}, {:.3f}] against {}: not enough to call it faster, and better than even",
        one.speedup, one.low, one.high, one.against);
    RETURN_IF_ERROR(log_->archive().append_decision(
        {"stands in for the champion of " + one.case_name, one.candidate_id, why}));
    progress_.event(
        fmt::format("{}: {} stands in for the champion, {}", one.case_name, one.candidate_id, why));
  }
  return {};
}

// The hash is written down first, the seed of the sealed cases is drawn after it: neither can be
// chosen to suit the other.
Result<Promotion> Campaign::promote_now(const BuiltCandidate& built) {
  const Candidate& portfolio = built.candidate;
  const std::string hash = frozen_hash(portfolio, built.artifacts);
  RETURN_IF_ERROR(
      log_->archive().append_event("frozen", {{"candidate_id", portfolio.id}, {"hash", hash}}));
  const std::uint64_t sealed_seed = random_bits();
  RETURN_IF_ERROR(log_->archive().append_event(
      "unsealed", {{"candidate_id", portfolio.id}, {"hash", hash}, {"seed", sealed_seed}}));
  const ActivityMeter::Span busy(meter_);
  return promote(bench(), baseline_, portfolio,
                 {.sealed_seed = sealed_seed,
                  .attempts = kPromotionAttempts,
                  .slower_allowed = goal_.slower_allowed(),
                  .most_s = reserve_->left_for_promotion_s(use())});
}

Result<void> Campaign::record_promotion(const BuiltCandidate& built) {
  const std::string why_not = why_not_won(*promotion_);
  promotion_->evaluation.id = log_->next_evaluation_id();
  if (promotion_->all_cores) promotion_->all_cores->id = log_->next_evaluation_id();
  return log_->archive().together([&]() -> Result<void> {
    RETURN_IF_ERROR(
        log_->attempt(built, promotion_->evaluation, why_not.empty() ? "winner" : "not promoted",
                      why_not.empty() ? fmt::format("{:.2f}x {} in geometric mean",
                                                    promotion_->geomean.speedup, baseline_.name)
                                      : why_not));
    if (promotion_->all_cores) RETURN_IF_ERROR(log_->confirmation(*promotion_->all_cores));
    RETURN_IF_ERROR(write_usage());
    return log_->promotion(*promotion_);
  });
}

Result<CampaignOutcome> Campaign::conclude() {
  RETURN_IF_ERROR(watch_budgets());  // what the promotion used
  progress_.phase("writing the report");
  CampaignFigures figures{
      .problem = &setup_.problem, .config = setup_.config, .environment = environment_};
  figures.baseline = &baseline_;
  figures.promotion = promotion_ ? &*promotion_ : nullptr;
  figures.not_promoted_because = not_promoted_because_;
  figures.evaluations = history_.evaluations;
  figures.search_s = history_.used_s + search_ended_s_ - search_began_s_;
  figures.screened_here = history_.evaluations - evaluations_before_;
  figures.screening_s = search_ended_s_ - search_began_s_ - reserve_->confirming_s();
  const Used used_in_all = used();
  figures.use = use(used_in_all);
  figures.limits = setup_.config.budget;
  figures.overhead_fraction = 1 - used_in_all.busy_s / figures.use.wall_s;
  figures.stop_reason = stop_reason_;
  figures.run_folder = setup_.run_folder;
  CampaignOutcome outcome{stop_reason_, summarise_campaign(figures)};
  ASSIGN_OR_RETURN(outcome.summary["contributions"], who_did_what(log_->archive()));
  const Result<void> kept = log_->archive().together([&]() -> Result<void> {
    RETURN_IF_ERROR(log_->usage(used_in_all, setup_.config.budget));
    return log_->ended(outcome.summary);
  });
  RETURN_IF_ERROR(kept);
  ASSIGN_OR_RETURN(const ReportInput input, gather_report(log_->archive(), setup_.problem));
  RETURN_IF_ERROR(write_reports(input, setup_.run_folder));
  return outcome;
}

}  // namespace

Result<CampaignOutcome> run_campaign(const CampaignSetup& setup, Progress& progress,
                                     const std::atomic<bool>& interrupted) {
  return Campaign(setup, progress, interrupted).run();
}

}  // namespace kbeam
