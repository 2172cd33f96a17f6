// kbeam tune --exhaustive: judges every setting of a file and writes a recorded space.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/cli/setting_bench.h"
#include "apps/cli/space_recorder.h"
#include "apps/cli/tune_modes.h"

namespace kbeam::cli {
namespace {

constexpr std::size_t kBuildsAhead = 2;
// In a row: then something is wrong with this machine and not with a setting.
constexpr int kMostEngineFailures = 10;

// Says of a sitting whether the default was as quick in it as it usually is: else the machine was
// busy, and so may the setting have been.
class Calm {
 public:
  bool holds(const JudgedSetting& judged) {
    if (judged.verdict != Verdict::accepted) return true;
    double sum = 0;
    for (const Measurement& measurement : judged.measurements)
      sum += std::log(*std::min_element(measurement.samples.reference_ns.begin(),
                                        measurement.samples.reference_ns.end()));
    const double level = sum / static_cast<double>(judged.measurements.size());
    seen_.push_back(level);
    std::vector<double> sorted = seen_;
    std::sort(sorted.begin(), sorted.end());
    return level <= sorted[sorted.size() / 4] + kSlack;
  }

 private:
  static constexpr double kSlack = 0.06;  // in the logarithm
  std::vector<double> seen_;
};
constexpr int kMostSittings = 5;

}  // namespace

// Every setting in random order, so that what drifts while it goes on is no property of a knob, and
// so that a part of it is a fair sample.
Result<int> record_space(const Options& options) {
  if (!options.has("--record"))
    return Error{ErrorCode::bad_input, "record a space", "--exhaustive needs a file",
                 "name it with --record, for instance space.json.gz"};
  ASSIGN_OR_RETURN(const Allowance allowance, Allowance::read(options));
  // One process, as many pairs as rank well; what is recorded must not depend on what came before.
  ASSIGN_OR_RETURN(const auto bench,
                   SettingBench::open(options, {.pairs_per_process = 10, .processes = 1},
                                      /*builds_give_way=*/false));
  ASSIGN_OR_RETURN(SpaceRecorder recorder, SpaceRecorder::open(options.get("--record"), *bench));
  const auto order = make_random_tuner(bench->space(), 1);
  std::uint64_t judged_now = 0, started = 0;
  int engine_failures = 0;
  Calm calm;
  bool complete = false;
  for (;;) {
    while (!complete && bench->building() < kBuildsAhead && allowance.leaves(started)) {
      const auto knobs = order->ask();
      complete = !knobs;
      if (complete || recorder.find(*knobs) != nullptr) continue;
      bench->start_build(*knobs);
      ++started;
    }
    if (bench->building() == 0) break;
    ASSIGN_OR_RETURN(JudgedSetting judged, bench->judge_next(0));
    for (int sitting = 1; sitting < kMostSittings && !calm.holds(judged); ++sitting)
      bench->judge_again(judged);
    engine_failures = judged.verdict == Verdict::engine_failed ? engine_failures + 1 : 0;
    if (engine_failures == kMostEngineFailures)
      return Error{ErrorCode::unavailable, "judge " + describe_knobs(judged.knobs), judged.reason,
                   "see kbeam doctor; the same command goes on with what is left"};
    RETURN_IF_ERROR(recorder.add(judged));
    ++judged_now;
    fmt::print(stderr, "{} settings  {}  {}  {:.3f} x  (built in {:.2f} s, judged in {:.2f} s)\n",
               recorder.size(), describe_knobs(judged.knobs), to_string(judged.verdict),
               judged.speedup, judged.build_s, judged.judge_s);
  }
  RETURN_IF_ERROR(recorder.write_space(*bench, complete));
  fmt::print("{}: {} settings{}\n", options.get("--record"), recorder.size(),
             complete ? ", all there are" : "; the same command goes on with the rest");
  return kDone;
}

}  // namespace kbeam::cli
