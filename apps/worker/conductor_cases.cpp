// What the conductor does with one case: one full check, or pairs of candidate and reference.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "apps/worker/conductor.h"
#include "apps/worker/conductor_phase.h"
#include "base/defence.h"
#include "base/entropy.h"
#include "measure/statistics.h"

namespace kbeam {
namespace {

// One timed output in eight, at random, gets the full check instead of the quick one.
constexpr std::uint64_t kFullCheckOneIn = 8;
// The host's slope over replays may exceed the events' time by so much before they disagree: a
// launch has a cost of its own on the host, and a busy host adds to it.
constexpr double kSlopeFactor = 1.5;
constexpr double kSlopeSlackNs = 10'000;
constexpr int kSlopeAttempts = 3;
// The quickest call of a process may take so much longer on the host's clock: the stream is kept
// busy for 30 us before it, and the host has to notice its end.
constexpr double kCallSlackNs = 200'000;
// Replays between the two readings of a slope: about this long, within limits.
constexpr double kSlopeSpanNs = 4e6;
constexpr int kLeastSlopeRepeats = 1;
constexpr int kMostSlopeRepeats = 400;
constexpr double kUnmeasured = std::numeric_limits<double>::infinity();

}  // namespace

bool Conductor::check_case(const TaskCase& task_case) {
  if (!may_start_unit()) return false;
  {
    const Phase phase(*this, "check");
    const bool plain = task_.task.kind == TaskKind::plain;
    SeatCallRequest request;
    request.case_name = task_case.the_case.name;
    // Plain runs are compared with each other: the same inputs every time.
    request.seed = plain ? derive_seed(task_.task.secret_seed, request.case_name) : fresh_seed();
    if (task_.task.fixed_seed) request.seed = *task_.task.fixed_seed;
    request.secret = tools_.random();
    request.depth = SeatDepth::full;
    request.cold = false;
    SeatCall result;
    if (!prepare(*candidate_, task_case) || !call(*candidate_, task_case, request, result))
      return false;
    if (plain) trial_->result().output_hashes[request.case_name] = result.output_hash;
    trial_->now().checked.push_back(request.case_name);
  }
  say("checked " + shown_name(task_case.the_case));
  return unit_done();
}

bool Conductor::time_case(const TaskCase& task_case, int process) {
  if (!may_start_unit()) return false;
  const std::string& name = task_case.the_case.name;
  {
    const Phase phase(*this, "time");
    if (!prepare(*candidate_, task_case) || !prepare(*reference_, task_case)) return false;
    note_condition(name, process);
    PairedSamples samples;
    double beyond_events_ns[2] = {kUnmeasured, kUnmeasured};
    if (!take_pairs(task_case, process, samples, beyond_events_ns)) return false;
    note_condition(name, process);
    if (!clocks_agree(*candidate_, task_case, median(samples.candidate_ns), beyond_events_ns[0]))
      return false;
    // A baseline is ours and hides nothing; several of its calls in a row can take a minute.
    const bool trusted = task_.task.reference->may_use_libraries;
    if (!trusted &&
        !clocks_agree(*reference_, task_case, median(samples.reference_ns), beyond_events_ns[1]))
      return false;
    PairedSamples& all = trial_->measurement_of(name).samples;
    const auto append = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(all.candidate_ns, samples.candidate_ns);
    append(all.reference_ns, samples.reference_ns);
    append(all.candidate_first, samples.candidate_first);
    append(all.process, samples.process);
    say(fmt::format("timed {} in process {} of {}: {:.1f} us against {:.1f} us",
                    shown_name(task_case.the_case), process + 1, task_.task.rule.processes,
                    median(samples.candidate_ns) / 1e3, median(samples.reference_ns) / 1e3));
  }
  return unit_done();
}

std::uint64_t Conductor::fresh_seed() const {
  constexpr std::uint64_t kFamousSeed = 42;
  return defence_is_on(Defence::fresh_content) ? tools_.random() : kFamousSeed;
}

SeatDepth Conductor::random_depth(const TaskCase& task_case) const {
  const bool full = task_case.quick_check_plan.empty() || tools_.random() % kFullCheckOneIn == 0;
  return full ? SeatDepth::full : SeatDepth::quick;
}

bool Conductor::take_pairs(const TaskCase& task_case, int process, PairedSamples& samples,
                           double (&beyond_events_ns)[2]) {
  Seat* const sides[2] = {candidate_.get(), reference_.get()};
  SeatCallRequest request;
  request.case_name = task_case.the_case.name;
  // The first call of a process pays for loading: it is checked in full and not counted.
  request.seed = fresh_seed();
  for (Seat* const side : sides) {
    request.secret = tools_.random();
    SeatCall first;
    if (!call(*side, task_case, request, first)) return false;
  }
  bool candidate_first = false;
  for (int pair = 0; pair < task_.task.rule.pairs_per_process; ++pair) {
    if (out_of_time()) {
      paused_ = true;
      return false;
    }
    // AB BA blocks: the first order of a block is drawn, the second is its mirror, so the order
    // effect cancels.
    candidate_first = pair % 2 == 0 ? tools_.random() % 2 == 0 : !candidate_first;
    request.seed = fresh_seed();  // the same inputs for both, never there before
    double time_ns[2] = {0, 0};
    for (int turn = 0; turn < 2; ++turn) {
      const int side = (turn == 0) == candidate_first ? 0 : 1;
      request.depth = random_depth(task_case);
      request.secret = tools_.random();
      SeatCall timed;
      if (!call(*sides[side], task_case, request, timed)) return false;
      time_ns[side] = timed.event_ns;
      beyond_events_ns[side] =
          std::min(beyond_events_ns[side], timed.host_ns - kSlopeFactor * timed.event_ns);
    }
    samples.candidate_ns.push_back(time_ns[0]);
    samples.reference_ns.push_back(time_ns[1]);
    samples.candidate_first.push_back(candidate_first ? 1 : 0);
    samples.process.push_back(process);
    // Whole blocks only: half a block would leave the order effect in.
    if (pair % 2 == 1 && may_skip_pairs(task_.task.rule, samples)) break;
  }
  return true;
}

// Holds the events against the host's clock: work that hides from the events cannot hide from the
// slope over many replays, and what the first of them left for the others (a mark in scratch) not
// from the timed calls themselves, each of which began with fresh memory.
bool Conductor::clocks_agree(Seat& seat, const TaskCase& task_case, double event_ns,
                             double beyond_events_ns) {
  if (!defence_is_on(Defence::host_clock)) return true;
  if (beyond_events_ns > kCallSlackNs)
    return clocks_disagree(seat, task_case, event_ns, kSlopeFactor * event_ns + beyond_events_ns);
  const double span = kSlopeSpanNs / std::max(event_ns, 1.0);
  const int repeats =
      static_cast<int>(std::clamp(span, double{kLeastSlopeRepeats}, double{kMostSlopeRepeats}));
  const double most_ns = kSlopeFactor * event_ns + kSlopeSlackNs;
  double least_ns = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < kSlopeAttempts; ++attempt) {
    double slope_ns = 0;
    if (const auto failure = seat.host_slope_ns(task_case.the_case.name, repeats, slope_ns))
      return seat_failed(seat, task_case.the_case, *failure);
    least_ns = std::min(least_ns, slope_ns);
    if (least_ns <= most_ns) return true;
  }
  return clocks_disagree(seat, task_case, event_ns, least_ns);
}

bool Conductor::clocks_disagree(Seat& seat, const TaskCase& task_case, double event_ns,
                                double host_ns) {
  return seat_failed(
      seat, task_case.the_case,
      {Verdict::below_physics_floor,
       fmt::format("the clocks disagree: events say {:.0f} ns a call, the host's clock {:.0f} ns",
                   event_ns, host_ns),
       true});
}

// A trusted subject: its outputs need not be those of the problem, so what the check says of them
// does not matter. What keeps one case from being timed does not keep the others.
bool Conductor::time_trusted_case(const TaskCase& task_case) {
  if (!may_start_unit()) return false;
  const std::string& name = task_case.the_case.name;
  const auto limit = task_.task.longest_call_s.find(name);
  const bool has_limit = limit != task_.task.longest_call_s.end();
  {
    const Phase phase(*this, "time");
    if (const auto failure = candidate_->prepare(name)) {
      if (!failure->alive) candidate_.reset();
      return leave_untimed(task_case, failure->verdict, failure->sentence);
    }
    note_condition(name, 0);
    std::vector<double> samples;
    const int calls = task_.task.rule.pairs_per_process * task_.task.rule.processes;
    for (int i = 0; i <= calls; ++i) {
      if (out_of_time()) {
        paused_ = true;
        return false;
      }
      SeatCallRequest request;
      request.case_name = name;
      request.seed = tools_.random();
      request.secret = tools_.random();
      request.depth = task_case.quick_check_plan.empty() ? SeatDepth::full : SeatDepth::quick;
      SeatCall timed;
      if (const auto failure = candidate_->call(request, timed)) {
        if (!failure->alive) candidate_.reset();
        return leave_untimed(task_case, failure->verdict, failure->sentence);
      }
      if (has_limit && timed.event_ns > 1e9 * limit->second)
        return leave_untimed(
            task_case, Verdict::timed_out,
            fmt::format("a call took {:.3g} s, longer than the {:.3g} s of interest",
                        timed.event_ns * 1e-9, limit->second));
      if (i > 0) samples.push_back(timed.event_ns);
    }
    note_condition(name, 0);
    trial_->result().case_ns[name] = median(samples);
    trial_->result().case_least_ns[name] = *std::ranges::min_element(samples);
    trial_->result().case_samples_ns[name] = std::move(samples);
    say(fmt::format("timed {}: {:.1f} us", shown_name(task_case.the_case),
                    trial_->result().case_ns[name] / 1e3));
  }
  return unit_done();
}

bool Conductor::leave_untimed(const TaskCase& task_case, Verdict verdict,
                              const std::string& sentence) {
  CheckReport report;
  report.case_name = task_case.the_case.name;
  report.verdict = verdict;
  report.grade = task_.task.grade;
  report.sentence = sentence;
  say(fmt::format("not timed {}: {}", shown_name(task_case.the_case), sentence));
  trial_->evaluation().checks.push_back(std::move(report));
  trial_->now().checked.push_back(task_case.the_case.name);
  return unit_done();
}

}  // namespace kbeam
