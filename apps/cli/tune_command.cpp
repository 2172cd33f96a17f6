// kbeam tune: the inner search alone. Here is what it does to one file: settings by the judge,
// against the file's default; the best few are confirmed before one is called better.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/cli/commands.h"
#include "apps/cli/setting_bench.h"
#include "apps/cli/space_recorder.h"
#include "apps/cli/tune_modes.h"
#include "apps/cli/warm_start.h"
#include "base/entropy.h"
#include "base/spelling.h"
#include "model/json_forms.h"

namespace kbeam::cli {
namespace {

constexpr std::size_t kBuildsAhead = 2;
constexpr int kMostEngineFailures = 10;  // in a row
constexpr std::uint64_t kUsualEvaluations = 100;
// A setting whose first process shows less than this share of the best is given up: few pairs of a
// noisy machine are off by less.
constexpr double kHopelessShare = 0.93;
// Settings whose ranking is within this share of the best may each be it: all are confirmed.
constexpr double kFinalistShare = 0.98;
constexpr std::size_t kMostFinalists = 3;

struct Finalist {
  KnobValues knobs;
  double ranked = 0;
  Evaluation confirmation;
  double speedup = 0;  // confirmed, the geometric mean over the cases
  bool faster = false;
};

class FileTuning {
 public:
  static Result<std::unique_ptr<FileTuning>> open(const Options& options);
  Result<void> search();
  Result<void> write_record() const;
  void confirm_best();
  int report(const Options& options) const;

 private:
  struct Step {
    JudgedSetting judged;
    bool recalled = false;  // from an earlier, stopped recording
  };
  explicit FileTuning(const Options& options) : quiet_(options.json()) {}
  Result<void> take(const JudgedSetting& judged, bool recalled);
  std::optional<KnobValues> next();
  std::vector<const Step*> ranked() const;
  Json json() const;

  bool quiet_;
  std::unique_ptr<SettingBench> bench_;
  std::optional<SpaceRecorder> recorder_;
  std::unique_ptr<Tuner> tuner_;
  Allowance allowance_;
  std::uint64_t seed_ = 0;
  std::string strategy_;
  std::vector<KnobValues> first_;  // of a warm start, the next at the back
  std::vector<Step> steps_;
  double best_ = 1;  // the default's own
  int engine_failures_ = 0;
  std::vector<Finalist> finalists_;
};

Result<std::unique_ptr<FileTuning>> FileTuning::open(const Options& options) {
  std::unique_ptr<FileTuning> made(new FileTuning(options));
  ASSIGN_OR_RETURN(made->allowance_, Allowance::read(options));
  if (!options.has("--evaluations") && !options.has("--budget"))
    made->allowance_.limit(kUsualEvaluations);
  ASSIGN_OR_RETURN(const std::vector<TunerStrategy> strategies, chosen_strategies(options));
  if (strategies.size() != 1)
    return Error{ErrorCode::bad_input, "tune " + options.get("FILE"),
                 "--strategy all is for --simulate", "choose one strategy"};
  made->seed_ = random_bits() >> 16;
  if (options.has("--seed")) {
    ASSIGN_OR_RETURN(made->seed_, parse_number(options.get("--seed"), "--seed"));
  }
  ASSIGN_OR_RETURN(made->bench_, SettingBench::open(options, {}, /*builds_give_way=*/true));
  made->strategy_ = strategies.front().name;
  made->tuner_ = strategies.front().make(made->bench_->space(), made->seed_);
  // The default is 1 by definition.
  made->tuner_->tell(made->bench_->space().defaults(), 1.0);
  if (options.has("--record")) {
    ASSIGN_OR_RETURN(made->recorder_, SpaceRecorder::open(options.get("--record"), *made->bench_));
  }
  if (options.has("--warm-from")) {
    ASSIGN_OR_RETURN(const WarmStart warm, read_warm_start(options, *made->bench_));
    for (const KnobValues& knobs : warm.failures) made->tuner_->tell(knobs, std::nullopt);
    made->first_.assign(warm.best.rbegin(), warm.best.rend());
    if (!options.json())
      fmt::print(stderr, "from {}: {} settings to begin with, {} that failed\n",
                 options.get("--warm-from"), warm.best.size(), warm.failures.size());
  }
  return made;
}

// What is to be judged next; settings that a recording knows are told at once and cost nothing.
std::optional<KnobValues> FileTuning::next() {
  if (first_.empty()) return tuner_->ask();
  KnobValues knobs = std::move(first_.back());
  first_.pop_back();
  tuner_->exclude(knobs);
  return knobs;
}

Result<void> FileTuning::take(const JudgedSetting& judged, bool recalled) {
  const bool accepted = judged.verdict == Verdict::accepted;
  if (judged.verdict == Verdict::engine_failed) {
    if (++engine_failures_ == kMostEngineFailures)
      return Error{ErrorCode::unavailable, "judge " + describe_knobs(judged.knobs), judged.reason,
                   "see kbeam doctor"};
    return {};
  }
  engine_failures_ = 0;
  tuner_->tell(judged.knobs, accepted ? std::optional<double>(judged.speedup) : std::nullopt);
  if (accepted) best_ = std::max(best_, judged.speedup);
  if (recorder_ && !recalled) RETURN_IF_ERROR(recorder_->add(judged));
  steps_.push_back({judged, recalled});
  if (!quiet_)
    fmt::print(stderr, "{:>4}  {:.3f} x (best {:.3f} x)  {}  {}{}\n", steps_.size(), judged.speedup,
               best_, describe_knobs(judged.knobs), to_string(judged.verdict),
               judged.hopeless ? ", given up" : "");
  return {};
}

Result<void> FileTuning::search() {
  std::uint64_t started = 0;
  bool exhausted = false;
  for (;;) {
    while (!exhausted && bench_->building() < kBuildsAhead && allowance_.leaves(started)) {
      const auto knobs = next();
      exhausted = !knobs;
      if (exhausted) break;
      if (const JudgedSetting* known = recorder_ ? recorder_->find(*knobs) : nullptr) {
        RETURN_IF_ERROR(take(*known, /*recalled=*/true));
        continue;
      }
      bench_->start_build(*knobs);
      ++started;
    }
    if (bench_->building() == 0) return {};
    ASSIGN_OR_RETURN(const JudgedSetting judged, bench_->judge_next(kHopelessShare * best_));
    RETURN_IF_ERROR(take(judged, /*recalled=*/false));
  }
}

Result<void> FileTuning::write_record() const {
  return recorder_ ? recorder_->write_space(*bench_, /*complete=*/false) : Result<void>();
}

std::vector<const FileTuning::Step*> FileTuning::ranked() const {
  std::vector<const Step*> order;
  for (const Step& step : steps_)
    if (step.judged.verdict == Verdict::accepted) order.push_back(&step);
  std::stable_sort(order.begin(), order.end(), [](const Step* a, const Step* b) {
    return a->judged.speedup > b->judged.speedup;
  });
  return order;
}

// The best of many rankings was also the luckiest: what counts is measured anew, in fresh processes
// on new inputs, at the confidence that so many tries leave.
void FileTuning::confirm_best() {
  for (const Step* step : ranked()) {
    if (step->judged.speedup <= 1 || step->judged.speedup < kFinalistShare * best_ ||
        finalists_.size() == kMostFinalists)
      break;
    finalists_.push_back({.knobs = step->judged.knobs, .ranked = step->judged.speedup});
  }
  for (Finalist& finalist : finalists_) {
    if (!quiet_) fmt::print(stderr, "confirming {}\n", describe_knobs(finalist.knobs));
    finalist.confirmation = bench_->confirm(finalist.knobs, static_cast<int>(finalists_.size()));
    if (finalist.confirmation.verdict != Verdict::accepted) continue;
    double sum = 0;
    finalist.faster = true;
    for (const Measurement& measurement : finalist.confirmation.measurements) {
      sum += std::log(measurement.summary.speedup);
      finalist.faster = finalist.faster && measurement.summary.comparison == Comparison::faster;
    }
    finalist.speedup =
        std::exp(sum / static_cast<double>(finalist.confirmation.measurements.size()));
  }
  std::stable_sort(finalists_.begin(), finalists_.end(), [](const Finalist& a, const Finalist& b) {
    return std::pair(a.faster, a.speedup) > std::pair(b.faster, b.speedup);
  });
}

Json FileTuning::json() const {
  Json json = {{"strategy", strategy_},
               {"seed", seed_},
               {"evaluations", steps_.size()},
               {"default", bench_->space().defaults()},
               {"best", nullptr},
               {"finalists", Json::array()},
               {"settings", Json::array()}};
  for (const Finalist& finalist : finalists_)
    json["finalists"].push_back({{"knobs", finalist.knobs},
                                 {"ranked", finalist.ranked},
                                 {"confirmed", finalist.speedup},
                                 {"faster", finalist.faster},
                                 {"evaluation", to_json(finalist.confirmation)}});
  if (!finalists_.empty() && finalists_.front().faster)
    json["best"] = {{"knobs", finalists_.front().knobs}, {"speedup", finalists_.front().speedup}};
  for (const Step& step : steps_)
    json["settings"].push_back({{"knobs", step.judged.knobs},
                                {"verdict", to_string(step.judged.verdict)},
                                {"speedup", step.judged.speedup},
                                {"given_up", step.judged.hopeless}});
  return json;
}

int FileTuning::report(const Options& options) const {
  const bool found = !finalists_.empty() && finalists_.front().faster;
  if (options.json()) {
    fmt::print("{}\n", json_text(json()));
    return found ? kDone : kNo;
  }
  for (const Finalist& finalist : finalists_) {
    fmt::print("{}: {:.3f} x when ranked, ", describe_knobs(finalist.knobs), finalist.ranked);
    if (finalist.confirmation.verdict != Verdict::accepted) {
      fmt::print("{}: {}\n", to_string(finalist.confirmation.verdict),
                 finalist.confirmation.reason);
      continue;
    }
    fmt::print("{:.3f} x confirmed\n", finalist.speedup);
    for (const Measurement& measurement : finalist.confirmation.measurements)
      fmt::print("  {:<14} {:.3f}x [{:.3f}, {:.3f}]  {}\n", measurement.case_name,
                 measurement.summary.speedup, measurement.summary.low, measurement.summary.high,
                 to_string(measurement.summary.comparison));
  }
  if (found)
    fmt::print("best: {}: {:.3f} x the default, over {} settings\n",
               describe_knobs(finalists_.front().knobs), finalists_.front().speedup, steps_.size());
  else
    fmt::print("no setting was confirmed to be faster than the default, over {} settings\n",
               steps_.size());
  return found ? kDone : kNo;
}

}  // namespace

Result<Allowance> Allowance::read(const Options& options) {
  Allowance allowance;
  if (options.has("--evaluations")) {
    ASSIGN_OR_RETURN(allowance.evaluations_,
                     parse_count(options.get("--evaluations"), "--evaluations"));
  }
  if (options.has("--budget")) {
    ASSIGN_OR_RETURN(allowance.seconds_, parse_duration(options.get("--budget"), "--budget"));
  }
  return allowance;
}

bool Allowance::leaves(std::uint64_t evaluations) const {
  const double used_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  return evaluations < evaluations_ && used_s < seconds_;
}

void Allowance::limit(std::uint64_t evaluations) {
  evaluations_ = std::min(evaluations_, evaluations);
}

Result<std::vector<TunerStrategy>> chosen_strategies(const Options& options) {
  const std::string named = options.get("--strategy");
  const auto every = tuner_strategies();
  if (named == "all") return std::vector<TunerStrategy>(every.begin(), every.end());
  std::vector<std::string> names;
  for (const TunerStrategy& strategy : every) {
    if (strategy.name == named) return std::vector<TunerStrategy>{strategy};
    names.emplace_back(strategy.name);
  }
  const auto close = closest_word(named, names);
  return Error{ErrorCode::bad_input, "read --strategy " + named, "there is no such strategy",
               close ? "did you mean " + *close + "?"
                     : fmt::format("choose among {}", fmt::join(names, ", "))};
}

Result<int> tune_file(const Options& options) {
  ASSIGN_OR_RETURN(const auto tuning, FileTuning::open(options));
  RETURN_IF_ERROR(tuning->search());
  RETURN_IF_ERROR(tuning->write_record());
  tuning->confirm_best();
  return tuning->report(options);
}

int tune_command(const Options& options) {
  const Result<int> code = options.has("--simulate")     ? simulate_tuners(options)
                           : options.has("--exhaustive") ? record_space(options)
                                                         : tune_file(options);
  return code.ok() ? *code : report_error(code.error(), options);
}

}  // namespace kbeam::cli
