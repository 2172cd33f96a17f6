#include "session/cpu_gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "base/defence.h"
#include "base/entropy.h"
#include "check/case_check.h"
#include "problem/problem_library.h"
#include "session/watched_builds.h"
#include "target/cpu/watched_run.h"

namespace kbeam {
namespace {

constexpr int kEqualCalls = 3;  // in one process; one more in the next
constexpr int kProcesses = 2;
constexpr int kWatchedTeam = 2;  // threads that can race, where the machine has one processor too
constexpr std::int64_t kSmallCaseBytes = 2 << 20;
constexpr double kWatchedTimeout_s = 300;
constexpr char kMayVary[] = "may_vary";  // the note of plan.may_vary()

using Bytes = std::vector<std::vector<std::byte>>;

Bytes copy_of(const std::vector<TensorView>& views) {
  Bytes copies;
  for (const TensorView& view : views) {
    const auto* begin = static_cast<const std::byte*>(view.data);
    copies.emplace_back(begin, begin + view.bytes());
  }
  return copies;
}

std::int64_t bytes_of(const Problem& problem, const Case& the_case) {
  std::int64_t bytes = 0;
  for (const TensorShape& shape : tensor_shapes(problem, the_case.axes)) bytes += shape.bytes();
  return bytes;
}

// A case with its inputs and what the shipped build made of them on one worker.
struct PlainRun {
  Case the_case;
  std::size_t row = 0;
  WatchedCase work;
  Bytes outputs;
  bool may_vary = false;
};

class Gates {
 public:
  explicit Gates(const GateRequest& request) : request_(request) {}

  GateOutcome run() {
    std::vector<Watch> watches;
    if (defence_is_on(Defence::memory_gate)) watches.push_back(Watch::memory);
    if (defence_is_on(Defence::thread_gate)) watches.push_back(Watch::threads);
    builds_.emplace(request_.build_watched, request_.subject.rows, watches, request_.seat.cpus);
    const bool repeats = gate("repeatable", [&] { return is_repeatable(); });
    const bool sound =
        repeats && (!defence_is_on(Defence::memory_gate) ||
                    gate(to_string(Watch::memory), [&] { return is_clean(Watch::memory); }));
    if (sound && uses_parallel_for_ && defence_is_on(Defence::thread_gate))
      gate(to_string(Watch::threads), [&] { return is_clean(Watch::threads); });
    return std::move(outcome_);
  }

 private:
  template <typename Body>
  bool gate(std::string_view name, const Body& body) {
    name_ = name;
    const std::int64_t began_ns = request_.clock.monotonic_ns();
    if (!body()) return false;
    const double took_s = static_cast<double>(request_.clock.monotonic_ns() - began_ns) * 1e-9;
    outcome_.passed.push_back({.name = name_,
                               .verdict = Verdict::accepted,
                               .sentence = sentence_,
                               .cases = static_cast<int>(plain_.size()),
                               .took_s = took_s});
    return true;
  }

  bool fail(RunnerFailure failure, const std::optional<Case>& where = std::nullopt) {
    outcome_.finding = {std::move(failure), where, name_};
    return false;
  }

  std::vector<int> teams() const {
    const int all = static_cast<int>(request_.seat.cpus.size());
    return all > 1 ? std::vector{1, all} : std::vector{1};
  }

  bool is_repeatable();
  bool repeats_in(BenchProcess& process, PlainRun& plain, int workers, int calls);
  bool is_clean(Watch watch);
  bool is_clean_row(Watch watch, std::size_t row, const std::vector<PlainRun*>& runs);
  bool agrees(Watch watch, const PlainRun& plain, Bytes outputs);

  const GateRequest& request_;
  GateOutcome outcome_;
  std::string name_;
  std::string sentence_;
  std::optional<WatchedBuilds> builds_;
  std::vector<PlainRun> plain_;
  std::map<std::string, Bytes> expected_;  // by case, on the team in hand
  std::map<std::string, std::uint64_t> keys_;
  bool uses_parallel_for_ = false;
  int equal_ = 0;
  int within_limits_ = 0;
};

std::optional<std::string> first_difference(const std::vector<TensorView>& views,
                                            const Bytes& expected) {
  for (std::size_t i = 0; i < views.size(); ++i) {
    const auto* found = static_cast<const std::byte*>(views[i].data);
    const std::size_t width =
        views[i].elements > 0 ? static_cast<std::size_t>(views[i].bytes() / views[i].elements) : 1;
    const auto at = std::mismatch(expected[i].begin(), expected[i].end(), found).first;
    if (at != expected[i].end())
      return fmt::format("{} element {}", views[i].name,
                         static_cast<std::size_t>(at - expected[i].begin()) / width);
  }
  return std::nullopt;
}

bool Gates::repeats_in(BenchProcess& process, PlainRun& plain, int workers, int calls) {
  const Case& the_case = plain.the_case;
  const Outcome<bool> prepared =
      process.prepare(the_case, request_.bank.inputs_for(the_case, request_.input_seed));
  if (!prepared.ok()) return fail(prepared.failure, the_case);
  plain.may_vary = process.notes().contains(kMayVary);
  const auto key = keys_.try_emplace(the_case.name, random_bits()).first->second;
  for (int repeat = 0; repeat < calls; ++repeat) {
    const auto called = process.call(key, {CheckDepth::full, request_.grade, random_bits()});
    if (!called.ok()) return fail(called.failure, the_case);
    if (called.value->report.verdict != Verdict::accepted)
      return fail({called.value->report.verdict, called.value->report.sentence}, the_case);
    const Slot& slot = process.used_slot();
    const auto [known, is_first] = expected_.try_emplace(the_case.name);
    if (is_first) {
      known->second = copy_of(slot.outputs);
      if (workers == 1) {
        plain.work.inputs = copy_of(slot.inputs);
        plain.outputs = known->second;
      }
      continue;
    }
    const auto difference = first_difference(slot.outputs, known->second);
    if (difference && !plain.may_vary && defence_is_on(Defence::repeatability_gate))
      return fail({Verdict::not_repeatable,
                   fmt::format("equal inputs gave another {} in a later call on {} workers; a "
                               "kernel whose results may vary within the limits says so with "
                               "plan.may_vary()",
                               *difference, workers)},
                  the_case);
  }
  return true;
}

bool Gates::is_repeatable() {
  for (const Case& the_case : request_.cases) {
    PlainRun& plain = plain_.emplace_back();
    plain.the_case = the_case;
    plain.row = row_of(request_.problem, request_.subject, the_case);
    plain.work.tensors = tensor_shapes(request_.problem, the_case.axes);
    plain.work.axes = the_case.axes;
  }
  for (const int workers : teams()) {
    expected_.clear();
    CpuSeat seat = request_.seat;
    seat.cpus.resize(static_cast<std::size_t>(workers));
    for (int index = 0; index < kProcesses; ++index) {
      auto started = BenchProcess::start(request_.problem, request_.code, request_.subject, seat,
                                         request_.cases);
      if (!started.ok()) return fail({Verdict::engine_failed, started.error().text()});
      if (!started->ok()) return fail(started->failure);
      for (PlainRun& plain : plain_) {
        if (request_.give_up && request_.give_up())
          return fail({Verdict::engine_failed, "the evaluation was interrupted"});
        if (!repeats_in(**started->value, plain, workers, index == 0 ? kEqualCalls : 1))
          return false;
      }
    }
  }
  const auto varying = std::count_if(plain_.begin(), plain_.end(),
                                     [](const PlainRun& plain) { return plain.may_vary; });
  sentence_ =
      fmt::format("{} equal calls in {} processes, on {} workers: ", kEqualCalls + kProcesses - 1,
                  kProcesses, fmt::join(teams(), " and "));
  sentence_ += varying == 0 ? "the same bits"
                            : fmt::format(
                                  "{} cases are declared to vary, within the limits; the "
                                  "others gave the same bits",
                                  varying);
  return true;
}

// The sanitizer's build may round otherwise (it merges fewer operations), so what is not the same
// bits must pass the check again.
bool Gates::agrees(Watch watch, const PlainRun& plain, Bytes outputs) {
  if (outputs == plain.outputs) {
    ++equal_;
    return true;
  }
  ++within_limits_;
  Bytes inputs = plain.work.inputs;
  std::vector<TensorView> input_views;
  std::vector<TensorView> output_views;
  for (const TensorShape& shape : plain.work.tensors) {
    const bool is_output = shape.role == KBEAM_OUTPUT;
    std::vector<TensorView>& views = is_output ? output_views : input_views;
    Bytes& memory = is_output ? outputs : inputs;
    views.push_back(make_view(shape, memory[views.size()].data()));
  }
  const CheckReport report =
      check_outputs(request_.code, CaseAdapter(plain.the_case),
                    {CheckDepth::full, request_.grade, random_bits()}, input_views, output_views);
  return report.verdict == Verdict::accepted ||
         fail({Verdict::not_repeatable,
               fmt::format("right in the build that ships, but wrong in the {} build: {}",
                           to_string(watch), report.sentence)},
              plain.the_case);
}

bool Gates::is_clean_row(Watch watch, std::size_t row, const std::vector<PlainRun*>& runs) {
  const Result<WatchedBuild> build = builds_->get(row, watch);
  if (!build.ok()) return fail({Verdict::engine_failed, build.error().text()});
  if (build->artifact.verdict != Verdict::accepted)
    return fail({build->artifact.verdict, "in the watched build: " + build->artifact.reason},
                runs.front()->the_case);
  std::vector<WatchedCase> work;
  for (const PlainRun* run : runs) work.push_back(run->work);
  for (const int workers : {1, kWatchedTeam}) {
    if (watch == Watch::threads && workers == 1) continue;
    const Result<WatchedOutcome> watched = run_watched({.build = *build,
                                                        .cases = work,
                                                        .workers = workers,
                                                        .timeout_s = kWatchedTimeout_s,
                                                        .give_up = request_.give_up});
    if (!watched.ok()) return fail({Verdict::engine_failed, watched.error().text()});
    if (request_.give_up && request_.give_up())
      return fail({Verdict::engine_failed, "the evaluation was interrupted"});
    uses_parallel_for_ |= watched->uses_parallel_for;
    if (watched->failure) {
      RunnerFailure failure = *watched->failure;
      const std::string inner = "candidate.cpp";
      const std::string& name = request_.subject.rows[row].source_name;
      if (const std::size_t at = failure.sentence.find(inner); at != std::string::npos)
        failure.sentence.replace(at, inner.size(), name);
      failure.sentence += fmt::format(", on {} workers", workers);
      return fail(std::move(failure), runs[watched->failed_case]->the_case);
    }
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (!agrees(watch, *runs[i], watched->outputs[i])) return false;
  }
  return true;
}

bool Gates::is_clean(Watch watch) {
  equal_ = within_limits_ = 0;
  std::map<std::size_t, std::vector<PlainRun*>> by_row;
  for (PlainRun& plain : plain_) by_row[plain.row].push_back(&plain);
  for (const auto& [row, runs] : by_row)
    if (!is_clean_row(watch, row, runs)) return false;
  sentence_ = fmt::format("no finding; {} outputs equal to the plain run's", equal_);
  if (within_limits_ > 0)
    sentence_ += fmt::format(", {} rounded otherwise and within the limits", within_limits_);
  return true;
}

}  // namespace

GateOutcome pass_gates(const GateRequest& request) {
  return Gates(request).run();
}

std::vector<Case> choose_gate_cases(const Problem& problem, const Subject& subject,
                                    const std::vector<Case>& cases) {
  std::vector<const Case*> by_size;
  for (const Case& the_case : cases) by_size.push_back(&the_case);
  std::stable_sort(by_size.begin(), by_size.end(), [&](const Case* a, const Case* b) {
    return bytes_of(problem, *a) < bytes_of(problem, *b);
  });
  std::vector<Case> chosen;
  std::set<AxisValues> shapes;
  std::set<std::size_t> rows;
  for (const Case* the_case : by_size) {
    const bool is_small = bytes_of(problem, *the_case) <= kSmallCaseBytes;
    const std::size_t row = row_of(problem, subject, *the_case);
    if ((!is_small || !shapes.insert(the_case->axes).second) && rows.contains(row)) continue;
    rows.insert(row);
    chosen.push_back(*the_case);
  }
  return chosen;
}

}  // namespace kbeam
