// Knob settings of one file by the judge: built ahead, timed against the file's default setting in
// few pairs, hopeless ones in fewest. Chooses nothing; kbeam tune does.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/bench_tools.h"
#include "search/knob_space.h"

namespace kbeam::cli {

// What the judge says of one setting.
struct JudgedSetting {
  KnobValues knobs;
  Verdict verdict = Verdict::engine_failed;
  std::string reason;
  double speedup = 0;     // over the default: geometric mean over the cases; 0 unless accepted
  bool hopeless = false;  // given up after the first process
  std::vector<Measurement> measurements;
  double build_s = 0;
  double judge_s = 0;
};

// How many pairs rank a setting. They do not claim anything: a confirmation does.
struct RankingEffort {
  int pairs_per_process = 5;
  int processes = 3;
};

class SettingBench {
 public:
  // Reads FILE, --problem, --case, --knob, --choices, --grade and --seed, and builds the default.
  static Result<std::unique_ptr<SettingBench>> open(const Options& options, RankingEffort effort,
                                                    bool builds_give_way);

  const KnobSpace& space() const { return *space_; }
  const std::vector<Case>& cases() const { return cases_; }
  BenchTools& tools() const { return *tools_; }
  const std::string& source() const { return source_; }
  Candidate candidate_with(const KnobValues& knobs) const;

  // Builds go on while settings are judged, in this order.
  void start_build(const KnobValues& knobs);
  std::size_t building() const { return tools_->builds->in_flight(); }
  // The oldest. Its measurement ends early when it is slower than `hopeless_below` after the first
  // process; 0: never.
  Result<JudgedSetting> judge_next(double hopeless_below);
  // Adds the pairs of another sitting to an accepted setting: for where the first was disturbed.
  void judge_again(JudgedSetting& judged);

  // Checked on every case and compared with the default by the rule for champions; `claims`:
  // confirmations that one choice is made from.
  Evaluation confirm(const KnobValues& knobs, int claims);

 private:
  SettingBench() = default;
  Result<void> read_space(const Options& options);
  Result<void> build_default();
  void judge(const Candidate& candidate, double hopeless_below, JudgedSetting& judged);

  std::unique_ptr<BenchTools> tools_;
  std::string file_;
  std::string source_;
  std::vector<Case> cases_;
  RankingEffort effort_;
  std::unique_ptr<KnobSpace> space_;
  Subject default_;
};

// The named cases, else the timed ones.
Result<std::vector<Case>> timed_or_named_cases(const Problem& problem,
                                               const std::vector<std::string>& names);

}  // namespace kbeam::cli
